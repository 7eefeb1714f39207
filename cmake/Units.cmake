# tessera_units(VARIABLE NAME files...): the files, or with TESSERA_UNITY the units of tools/units.py that include them, for
# the target NAME. Two fifths of what the compiler takes from nothing; an edited file leaves its unit at the next build.
if(TESSERA_UNITY)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()

function(tessera_units variable name)
  if(TESSERA_UNITY AND ARGN)
    set(script ${CMAKE_SOURCE_DIR}/tools/units.py)
    execute_process(COMMAND ${Python3_EXECUTABLE} ${script} ${CMAKE_BINARY_DIR}/units/${name} ${ARGN}
                    OUTPUT_VARIABLE units COMMAND_ERROR_IS_FATAL ANY)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${script} ${ARGN})
    set(${variable} ${units} PARENT_SCOPE)
  else()
    set(${variable} ${ARGN} PARENT_SCOPE)
  endif()
endfunction()
