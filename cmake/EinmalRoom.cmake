# einmal_room(NAME <room>
#             HEADERS <public headers> SOURCES <.cpp>
#             ROOMS <rooms this one may include: the arrows of ARCHITECTURE.md>
#             PRIVATE <external libraries, never visible in a public header>
#             PUBLIC <external libraries a public header needs>
#             TESTS <x_test.cpp: seconds> SLOW_TESTS <x_test.cpp: minutes>
#             PG_TESTS, SLOW_PG_TESTS <x_pgtest.cpp: the same with a PostgreSQL server; one ctest entry for all of
#             them, so that they share the server their program starts>
#             TEST_ROOMS <rooms only the tests use> TEST_LIBS <external libraries only the tests use>)
#
# Makes the library einmal_<room> with its alias einmal::<room>. The only include path it exports is
# its *view* (build/view/<room>/einmal/<room>, a symlink): including a room that is not in ROOMS does
# not compile. einmal_<room>_links links the whole archive with the declared rooms only, and the header
# set is checked for self-containment (target all_verify_interface_header_sets).
include_guard()

define_property(GLOBAL PROPERTY EINMAL_ROOMS BRIEF_DOCS "rooms in order of declaration")

function(einmal_room)
  cmake_parse_arguments(ROOM "" "NAME" "HEADERS;SOURCES;ROOMS;PRIVATE;PUBLIC;TESTS;SLOW_TESTS;PG_TESTS;SLOW_PG_TESTS;TEST_ROOMS;TEST_LIBS" ${ARGN})
  if(ROOM_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "einmal_room(${ROOM_NAME}): unknown arguments ${ROOM_UNPARSED_ARGUMENTS}")
  endif()
  set(target einmal_${ROOM_NAME})
  set(view ${PROJECT_BINARY_DIR}/view/${ROOM_NAME})
  file(MAKE_DIRECTORY ${view}/einmal)
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${view}/einmal/${ROOM_NAME} SYMBOLIC)

  add_library(${target} STATIC ${ROOM_SOURCES})
  add_library(einmal::${ROOM_NAME} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${ROOM_NAME} LINKER_LANGUAGE CXX)
  list(TRANSFORM ROOM_HEADERS PREPEND ${view}/einmal/${ROOM_NAME}/ OUTPUT_VARIABLE headers)
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${view} FILES ${headers})
  set(rooms ${ROOM_ROOMS})
  list(TRANSFORM rooms PREPEND einmal::)
  target_link_libraries(${target} PUBLIC ${rooms} ${ROOM_PUBLIC} PRIVATE ${ROOM_PRIVATE}
                        $<BUILD_INTERFACE:einmal_warnings>)
  set_property(GLOBAL APPEND PROPERTY EINMAL_ROOMS ${ROOM_NAME})
  set_property(GLOBAL PROPERTY EINMAL_ROOM_${ROOM_NAME} "${ROOM_ROOMS}")
  if(NOT ROOM_NAME STREQUAL "testing")
    install(TARGETS ${target} EXPORT einmal-targets FILE_SET HEADERS)
  endif()

  if(NOT EINMAL_DEVELOPER)
    return()
  endif()
  set(main ${PROJECT_BINARY_DIR}/link_main.cpp)
  if(NOT EXISTS ${main})
    file(WRITE ${main} "int main() {}\n")
  endif()
  add_executable(${target}_links ${main})
  target_link_libraries(${target}_links PRIVATE
    -Wl,--whole-archive $<TARGET_FILE:${target}> -Wl,--no-whole-archive ${rooms} ${ROOM_PUBLIC} ${ROOM_PRIVATE})
  add_dependencies(${target}_links ${target})

  foreach(kind TESTS SLOW_TESTS PG_TESTS SLOW_PG_TESTS)
    if(ROOM_${kind})
      string(TOLOWER ${kind} suffix)
      string(REGEX REPLACE "s$" "" suffix ${suffix})
      set(test_rooms ${ROOM_TEST_ROOMS})
      list(TRANSFORM test_rooms PREPEND einmal::)
      set(label fast)
      if(kind MATCHES "^SLOW")
        set(label slow)
      endif()
      set(whole "")
      if(kind MATCHES "PG_TESTS$")
        set(whole WHOLE)
      endif()
      einmal_test(NAME ${target}_${suffix} ${whole} LABEL ${label} SOURCES ${ROOM_${kind}}
                  LIBS einmal::${ROOM_NAME} ${test_rooms} ${ROOM_PRIVATE} ${ROOM_TEST_LIBS})
    endif()
  endforeach()
endfunction()

# einmal_test(NAME <target> LABEL fast|slow|rare SOURCES <.cpp> LIBS <libraries> [SERIAL] [WHOLE] [TIMEOUT <s>])
# One GoogleTest program; every test in it is one ctest entry, or with WHOLE the program is.
function(einmal_test)
  cmake_parse_arguments(TEST "SERIAL;WHOLE" "NAME;LABEL;TIMEOUT" "SOURCES;LIBS;DEPENDS" ${ARGN})
  if(NOT EINMAL_DEVELOPER)
    return()
  endif()
  add_executable(${TEST_NAME} ${TEST_SOURCES})
  target_link_libraries(${TEST_NAME} PRIVATE ${TEST_LIBS} GTest::gmock GTest::gtest GTest::gtest_main einmal_warnings)
  if(TEST_DEPENDS)
    add_dependencies(${TEST_NAME} ${TEST_DEPENDS})
  endif()
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 300)
  endif()
  set(serial FALSE)
  if(TEST_SERIAL)
    set(serial TRUE)
  endif()
  if(TEST_WHOLE)
    add_test(NAME ${TEST_NAME} COMMAND ${TEST_NAME})
    set_tests_properties(${TEST_NAME} PROPERTIES LABELS ${TEST_LABEL} TIMEOUT ${TEST_TIMEOUT} RUN_SERIAL ${serial})
    return()
  endif()
  gtest_discover_tests(${TEST_NAME} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${TEST_LABEL} TIMEOUT ${TEST_TIMEOUT} RUN_SERIAL ${serial})
endfunction()
