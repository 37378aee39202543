# SPDX-License-Identifier: MIT
#
# How one library, preload object or program is made: the flags that all share,
# and the few that some sources need.

# incstack_sources(<variable> <glob>...): the files, noticed when they come and go.
function(incstack_sources variable)
	list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/)
	file(GLOB found CONFIGURE_DEPENDS ${ARGN})
	set(${variable} ${found} PARENT_SCOPE)
endfunction()

function(incstack_common_options target)
	set(c_only $<COMPILE_LANGUAGE:C>)
	set(not_asm $<COMPILE_LANGUAGE:C,CXX>)
	set_target_properties(${target} PROPERTIES
		C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS ON
		CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON)
	target_include_directories(${target} PRIVATE
		${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
		${PROJECT_SOURCE_DIR}/profiler)
	# Empty, as in `#define _GNU_SOURCE`: sources that say so themselves do not clash.
	target_compile_definitions(${target} PRIVATE $<${c_only}:_GNU_SOURCE=>
		$<$<BOOL:${INCSTACK_DEBUG}>:INCSTACK_DEBUG=1>
		$<$<BOOL:${INCSTACK_HOSTILE}>:INCSTACK_HOSTILE=1>)
	target_compile_options(${target} PRIVATE
		$<${not_asm}:-Wall> $<${not_asm}:-Wextra> $<${not_asm}:-Wshadow>
		$<${c_only}:-Wconversion> $<${c_only}:-Wmissing-prototypes>
		$<${c_only}:-Wstrict-prototypes>
		$<$<BOOL:${INCSTACK_WERROR}>:-Werror>)
	# The thunks use directives that only the GNU assembler knows.
	if(CMAKE_ASM_COMPILER_ID MATCHES "Clang")
		target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:ASM>:-fno-integrated-as>)
	endif()
	if(INCSTACK_FUZZ)
		target_compile_options(${target} PRIVATE $<${not_asm}:-fsanitize=fuzzer-no-link>)
	endif()
	# The counters are a mapped file: those of processes that are killed are not lost.
	if(INCSTACK_COVERAGE)
		target_compile_options(${target} PRIVATE
			$<${not_asm}:-fprofile-instr-generate=${PROJECT_BINARY_DIR}/profiles/%m%c.profraw>
			$<${not_asm}:-fcoverage-mapping>
			"$<${not_asm}:SHELL:-mllvm -runtime-counter-relocation>")
		target_link_options(${target} PRIVATE -fprofile-instr-generate)
	endif()
	if(INCSTACK_SANITIZE)
		target_compile_options(${target} PRIVATE -fsanitize=${INCSTACK_SANITIZE}
			-fno-sanitize-recover=all -fno-omit-frame-pointer)
		target_link_options(${target} PRIVATE -fsanitize=${INCSTACK_SANITIZE})
	endif()
endfunction()

# A static library that takes part in no install.
function(incstack_internal_library target)
	add_library(${target} STATIC ${ARGN})
	set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
		C_VISIBILITY_PRESET hidden)
	incstack_common_options(${target})
endfunction()

# Release builds are hardened as Debian builds its packages. Sanitizers check more, and a build that
# does not optimize cannot fortify.
set(incstack_hardened $<CONFIG:RelWithDebInfo,Release,MinSizeRel>)
if(INCSTACK_SANITIZE OR INCSTACK_FUZZ OR INCSTACK_COVERAGE)
	set(incstack_hardened 0)
endif()
set(incstack_guards -fstack-protector-strong -fstack-clash-protection)

# incstack_harden(<target>): for code that reads what others have written. Not for the code that runs
# within samples, returns and calls of malloc: a guard of the stack costs instructions there.
function(incstack_harden target)
	set(c $<AND:$<COMPILE_LANGUAGE:C,CXX>,${incstack_hardened}>)
	target_compile_options(${target} PRIVATE "$<${c}:${incstack_guards}>"
		"$<${c}:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2;-Wformat;-Werror=format-security>")
	get_target_property(type ${target} TYPE)
	if(type STREQUAL "EXECUTABLE")
		set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
		target_link_options(${target} PRIVATE -pie)
	endif()
	if(NOT type STREQUAL "STATIC_LIBRARY")
		incstack_harden_link(${target})
	endif()
endfunction()

# incstack_harden_link(<target>): the tables through which an object calls others cannot be written
# to once it is loaded.
function(incstack_harden_link target)
	target_link_options(${target} PRIVATE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endfunction()

# incstack_core_folders(<target> [<definition>...]): compiles the folders of the core, each with
# its own flags, as <target>_folder_base and so on. Their objects are
# the sources of the archive <target>: ${<target>_objects}. The portable part alone is
# ${<target>_portable_objects}.
function(incstack_core_folders target)
	set(objects "")
	foreach(folder IN ITEMS base heap trace safepoint tracer mixed instrument)
		incstack_sources(sources src/${folder}/*.c)
		if(folder STREQUAL "trace")
			incstack_sources(arch src/arch/x86_64/*.c src/arch/x86_64/*.S)
			list(APPEND sources ${arch})
		endif()
		add_library(${target}_folder_${folder} OBJECT ${sources})
		set_target_properties(${target}_folder_${folder} PROPERTIES
			POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
		incstack_common_options(${target}_folder_${folder})
		target_compile_definitions(${target}_folder_${folder} PRIVATE ${ARGN})
		list(APPEND objects $<TARGET_OBJECTS:${target}_folder_${folder}>)
	endforeach()
	# Tracing runs between a return and its resume address: it may touch no vector register,
	# not in a memcpy that an unoptimizing compiler calls either, and call nothing that the
	# thread sanitizer inserts.
	set(c_only $<COMPILE_LANGUAGE:C>)
	target_compile_options(${target}_folder_trace PRIVATE
		$<$<AND:${c_only},$<CONFIG:Debug>>:-O1> $<${c_only}:-mgeneral-regs-only>
		$<${c_only}:-fno-sanitize=thread> $<${c_only}:-fno-stack-protector>)
	set(${target}_objects ${objects} PARENT_SCOPE)
	set(${target}_portable_objects $<TARGET_OBJECTS:${target}_folder_base>
		$<TARGET_OBJECTS:${target}_folder_heap> PARENT_SCOPE)
endfunction()

# incstack_library(<target> <component> <source>...): a library that is installed.
# Always position independent: it is linked into shared objects of virtual machines.
function(incstack_library target component)
	incstack_internal_library(${target} ${ARGN})
	if(component STREQUAL "core")
		set(name incstack)
	else()
		set(name ${component})
	endif()
	add_library(incstack::${name} ALIAS ${target})
	if(component STREQUAL "core")
		add_library(incstack::core ALIAS ${target})
	endif()
	set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
	target_include_directories(${target} PUBLIC
		$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
		$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
	set_property(GLOBAL APPEND PROPERTY INCSTACK_COMPONENTS ${component})
	set_property(GLOBAL PROPERTY INCSTACK_COMPONENT_${component} ${target})
endfunction()

# incstack_shared_library(<static> <component> <source>...): the library <static>_shared, which
# is installed instead of the static one. It exports what the version script says. Until 1.0 a
# minor version may break the interface, so it is part of the names.
function(incstack_shared_library static component)
	set(target ${static}_shared)
	set(INCSTACK_ABI ${PROJECT_VERSION_MAJOR})
	if(PROJECT_VERSION_MAJOR EQUAL 0)
		string(APPEND INCSTACK_ABI .${PROJECT_VERSION_MINOR})
	endif()
	set(map ${PROJECT_BINARY_DIR}/incstack.map)
	configure_file(${PROJECT_SOURCE_DIR}/cmake/incstack.map.in ${map} @ONLY)
	add_library(${target} SHARED ${ARGN})
	get_target_property(name ${static} EXPORT_NAME)
	set_target_properties(${target} PROPERTIES OUTPUT_NAME ${static} EXPORT_NAME ${name}
		VERSION ${PROJECT_VERSION} SOVERSION ${INCSTACK_ABI} C_VISIBILITY_PRESET hidden
		INSTALL_RPATH $ORIGIN LINK_DEPENDS ${map})
	set_target_properties(${static} PROPERTIES EXCLUDE_FROM_ALL ON)
	incstack_common_options(${target})
	target_compile_definitions(${target} PRIVATE INCSTACK_SHARED)
	target_link_options(${target} PRIVATE -Wl,-z,defs -Wl,--version-script=${map})
	target_include_directories(${target} PUBLIC
		$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
		$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
	set_property(GLOBAL PROPERTY INCSTACK_COMPONENT_${component} ${target})
endfunction()

# incstack_preload(<target> <source>...): an object for LD_PRELOAD or dlopen.
function(incstack_preload target)
	add_library(${target} SHARED ${ARGN})
	set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET hidden
		LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
	incstack_common_options(${target})
	# --exclude-libs: what comes out of our archives stays inside the object.
	target_link_options(${target} PRIVATE -Wl,-z,defs -Wl,--exclude-libs,ALL)
	target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
	incstack_harden_link(${target})
endfunction()

# incstack_link_existing(<target> <library>...): those of the libraries that exist.
function(incstack_link_existing target)
	foreach(library IN LISTS ARGN)
		if(TARGET ${library})
			target_link_libraries(${target} PRIVATE ${library})
		endif()
	endforeach()
endfunction()

# incstack_jail(<target>): what the sources of profiler/tool/jail need. The sanitizers and the counters of
# the coverage open files by themselves, so their builds have a jail that is open.
function(incstack_jail target)
	target_link_libraries(${target} PRIVATE PkgConfig::SECCOMP)
	if(INCSTACK_SANITIZE OR INCSTACK_COVERAGE)
		target_compile_definitions(${target} PRIVATE INCSTACK_JAIL_OPEN=1)
	endif()
endfunction()

# incstack_programs(<folder> <library>...): one program per C or C++ file of the folder, as
# build/<preset>/<folder>/<name>, linked with those of the libraries that exist. The
# files of a folder <folder>/<name>/ belong to the program; *_fp.c and *_nofp.c
# there say how they are compiled.
function(incstack_programs folder)
	incstack_sources(sources ${folder}/*.c ${folder}/*.cpp)
	foreach(source IN LISTS sources)
		cmake_path(GET source STEM name)
		incstack_sources(parts ${folder}/${name}/*.c)
		foreach(part IN LISTS parts)
			if(part MATCHES "_fp\\.c$")
				set_property(SOURCE ${part} APPEND PROPERTY COMPILE_OPTIONS
					-fno-omit-frame-pointer)
			elseif(part MATCHES "_nofp\\.c$")
				set_property(SOURCE ${part} APPEND PROPERTY COMPILE_OPTIONS
					-fomit-frame-pointer)
			endif()
		endforeach()
		add_executable(${folder}_${name} ${source} ${parts})
		incstack_common_options(${folder}_${name})
		set_target_properties(${folder}_${name} PROPERTIES OUTPUT_NAME ${name} ENABLE_EXPORTS ON
			RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
		incstack_link_existing(${folder}_${name} ${ARGN})
		target_link_libraries(${folder}_${name} PRIVATE Threads::Threads ${CMAKE_DL_LIBS} m)
	endforeach()
endfunction()
