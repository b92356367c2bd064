# SPDX-License-Identifier: BSD-3-Clause
# The functions of ptero.h are what the library shows, no more and no less.
execute_process(COMMAND "${NM}" -D --defined-only "${LIBRARY}" OUTPUT_VARIABLE symbols
                RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${NM} cannot read ${LIBRARY}.")
endif()
string(REGEX MATCHALL "[^ \n]+\n" shown "${symbols}")
string(REPLACE "\n" "" shown "${shown}")
file(READ "${HEADER}" header)
string(REGEX REPLACE "/\\*([^*]|\\*[^/])*\\*/" "" header "${header}")
string(REGEX MATCHALL "ptero_[a-z_]+\\(" declared "${header}")
string(REPLACE "(" "" declared "${declared}")
list(SORT shown)
list(SORT declared)
list(LENGTH declared count)
if(count LESS 10 OR NOT "${shown}" STREQUAL "${declared}")
  message(FATAL_ERROR "The library shows\n${shown}\nand ptero.h declares\n${declared}")
endif()
