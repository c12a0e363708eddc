# einmal_embed_schema(<out.cpp> <file.sql>...): the SQL files as C++ string literals, in this order. The file that is
# compiled in, the file that is installed and the file in the source tree are one text.
function(einmal_embed_schema out)
  set(entries "")
  foreach(file IN LISTS ARGN)
    file(READ ${CMAKE_CURRENT_SOURCE_DIR}/${file} text)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file})
    cmake_path(GET file FILENAME name)
    string(REGEX MATCH "^[0-9]+" version ${name})
    math(EXPR version "${version}")
    string(APPEND entries "    {${version}, \"${name}\", R\"einmal_sql(${text})einmal_sql\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT "#include \"einmal/postgres/schema_steps.hpp\"

namespace einmal::postgres {

const std::vector<SchemaStep>& schema_steps() {
  static const std::vector<SchemaStep> steps{
@entries@  };
  return steps;
}

}  // namespace einmal::postgres
")
endfunction()
