# Writes build/rooms.md, the table of rooms and arrows as the build really has them. ARCHITECTURE.md contains
# that table; a test compares the two.
get_property(rooms GLOBAL PROPERTY EINMAL_ROOMS)
set(table "| room | may include |\n|---|---|\n")
foreach(room IN LISTS rooms)
  get_property(arrows GLOBAL PROPERTY EINMAL_ROOM_${room})
  list(SORT arrows)
  string(REPLACE ";" " " arrows "${arrows}")
  if(arrows STREQUAL "")
    set(arrows "-")
  endif()
  string(APPEND table "| `${room}` | ${arrows} |\n")
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/rooms.md "${table}")
