# tessera_units(VARIABLE NAME files...): the files, or with TESSERA_UNITY the units of tools/units.py that include them, for
# the target NAME. Two fifths of what the compiler takes from nothing; but an edit compiles all of its unit. Files of
# TESSERA_APART, paths from the project's root, stay by themselves: a file that comes first would shift the units behind it.
if(TESSERA_UNITY)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()

function(tessera_units variable name)
  if(TESSERA_UNITY AND ARGN)
    set(script ${CMAKE_SOURCE_DIR}/tools/units.py)
    list(TRANSFORM TESSERA_APART PREPEND ${CMAKE_SOURCE_DIR}/ OUTPUT_VARIABLE listed)
    set(apart "")
    set(together ${ARGN})
    foreach(file IN LISTS listed)
      if(file IN_LIST together)
        list(REMOVE_ITEM together ${file})
        list(APPEND apart ${file})
      endif()
    endforeach()
    execute_process(COMMAND ${Python3_EXECUTABLE} ${script} ${CMAKE_BINARY_DIR}/units/${name} ${together}
                    OUTPUT_VARIABLE units COMMAND_ERROR_IS_FATAL ANY)
    # A file whose names change may have to move to another unit.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${script} ${ARGN})
    set(${variable} ${units} ${apart} PARENT_SCOPE)
  else()
    set(${variable} ${ARGN} PARENT_SCOPE)
  endif()
endfunction()
