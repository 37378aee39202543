# SPDX-License-Identifier: MIT
#
# Run when the documents have been installed: replaces each link to a file that is not installed by
# the text of the link. `documents` is their folder, relative to the prefix or absolute.
cmake_path(ABSOLUTE_PATH documents BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}")
string(PREPEND documents "$ENV{DESTDIR}")
file(GLOB_RECURSE files "${documents}/*.md")
foreach(file IN LISTS files)
	file(READ "${file}" text)
	string(REGEX REPLACE
		"\\[([^]]+)\\]\\((\\.\\./)*(adapters|include|man|profiler|src|tests|CONTRIBUTING)[^)]*\\)" "\\1"
		replaced "${text}")
	if(NOT replaced STREQUAL text)
		file(WRITE "${file}" "${replaced}")
	endif()
endforeach()
