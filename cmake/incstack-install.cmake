# SPDX-License-Identifier: MIT
#
# What `cmake --install` puts where. One export set per library, so that a program
# which links the core alone need not have libunwind.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/incstack)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
# The files find the prefix from where they are, so an installed tree can be moved.
file(RELATIVE_PATH prefix_from_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
set(PC_PREFIX "\${pcfiledir}/${prefix_from_pc}")
get_property(components GLOBAL PROPERTY INCSTACK_COMPONENTS)

set(pc_description_core "Incremental stack tracing and partial safepoints")
set(pc_description_heap "Incremental stack tracing for interpreters whose frames lie on the heap")
set(pc_description_native "Incremental stack tracing of C and C++ stacks")
set(pc_description_profile "Calling context trees and profile writers")
set(pc_requires_core "")
set(pc_requires_heap "")
set(pc_requires_native "incstack")
set(pc_requires_profile "")
set(pc_private_core "")
set(pc_private_heap "")
set(pc_private_native "libunwind-generic")
set(pc_private_profile "zlib libzstd yajl")
if(TARGET incstack)
	set(pc_requires_profile "incstack")
endif()

foreach(component IN LISTS components)
	get_property(target GLOBAL PROPERTY INCSTACK_COMPONENT_${component})
	install(TARGETS ${target} EXPORT incstack-${component}
		ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
		LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
	install(EXPORT incstack-${component} NAMESPACE incstack:: DESTINATION ${package_dir}
		FILE incstack-${component}-targets.cmake)

	get_target_property(PC_NAME ${target} OUTPUT_NAME)
	if(NOT PC_NAME)
		set(PC_NAME ${target})
	endif()
	if(component STREQUAL "core")
		set(pc_file incstack)
	else()
		set(pc_file incstack-${component})
	endif()
	set(PC_DESCRIPTION ${pc_description_${component}})
	set(PC_REQUIRES ${pc_requires_${component}})
	set(PC_REQUIRES_PRIVATE "")
	set(PC_LIBS "-l${PC_NAME}")
	if(NOT INCSTACK_SHARED)
		set(PC_REQUIRES_PRIVATE ${pc_private_${component}})
	endif()
	if(component STREQUAL "native" AND NOT INCSTACK_SHARED)
		# gcc_s before libunwind: see CMakeLists.txt. Not under Libs.private,
		# which pkg-config prints behind the private requirements.
		string(APPEND PC_LIBS " -Wl,--push-state,--no-as-needed,-lgcc_s,--pop-state -pthread")
	endif()
	if(component STREQUAL "profile" AND NOT INCSTACK_SHARED)
		string(APPEND PC_LIBS " -lprotobuf-nanopb -lm") # nanopb has no pkg-config file
	endif()
	configure_file(${PROJECT_SOURCE_DIR}/cmake/incstack.pc.in
		${PROJECT_BINARY_DIR}/pkgconfig/${pc_file}.pc @ONLY)
	install(FILES ${PROJECT_BINARY_DIR}/pkgconfig/${pc_file}.pc DESTINATION ${pkgconfig_dir})
endforeach()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/incstack-config.cmake.in
	${PROJECT_BINARY_DIR}/incstack-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/incstack-config-version.cmake
	COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/incstack-config.cmake
	${PROJECT_BINARY_DIR}/incstack-config-version.cmake DESTINATION ${package_dir})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/incstack DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
	FILES_MATCHING PATTERN "*.h")

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md
	${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_SOURCE_DIR}/SECURITY.md
	DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs ${PROJECT_SOURCE_DIR}/examples
	DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN api EXCLUDE)
# Documents link to sources that are not installed. What remains of such a link is its text.
install(CODE "set(documents \"${CMAKE_INSTALL_DOCDIR}\")")
install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/incstack-unlink.cmake)

if(TARGET incstack_tool)
	install(TARGETS incstack_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
	install(DIRECTORY ${PROJECT_SOURCE_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
		FILES_MATCHING PATTERN "*.1")
endif()
if(TARGET incstack_tool)
	install(FILES completions/incstack.bash RENAME incstack
		DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
	install(FILES completions/incstack.zsh RENAME _incstack
		DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
	install(FILES completions/incstack.fish
		DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
# The agent, and what authors of agents need for a JVM with the library inside.
if(TARGET incstack_java)
	install(FILES ${PROJECT_SOURCE_DIR}/adapters/hotspot/include/incstack_jvmti.h
		DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
foreach(target incstack_preload incstack_preload_waits incstack_recorder incstack_java)
	if(TARGET ${target})
		install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/incstack)
	endif()
endforeach()
