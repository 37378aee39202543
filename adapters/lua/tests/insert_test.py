# SPDX-License-Identifier: MIT
"""The tool that inserts our lines into Lua, on a small tree of our own with the same places.

    insert_test.py TOOL
"""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from insertion_tests import InsertionTests

TREE = {
    "src/lua.h": '#define LUA_VERSION_MAJOR "5"\n#define LUA_VERSION_MINOR "4"\n',
    "src/lua.c": '#include "lualib.h"\n\nstatic int pmain (State *s) {\n  luaL_openlibs(L);\n  go();\n}\n',
    "src/lcorolib.c":
        '#include "lualib.h"\n\nstatic int luaB_auxwrap (S *s) {\n  stat = lua_resetthread(co);\n}\n\n'
        "static int luaB_close (S *s) {\n  status = lua_resetthread(co);\n}\n",
    "src/ldebug.c": "int luaG_traceexec (S *s) {\n  if (!(mask & LINES)) {\n    off(!(mask & LINES));\n  }\n}\n",
    "src/ldo.c":
        "void luaD_poscall (S *s) {\n  L->ci = ci->previous;\n}\n\n"
        "int precallC (S *s) {\n  lua_assert(ci->top);\n  n = f(s);\n  luaD_poscall(s, n);\n}\n\n"
        "l_noret luaD_throw (S *s) {\n    LUAI_THROW(L, L->errorJmp);\n}\n\n"
        "static int precover (S *s) {\n  while (failed) {\n    L->ci = ci;\n"
        "    status = luaD_rawrunprotected(L, unroll, NULL);\n  }\n}\n\n"
        "LUA_API int lua_resume (S *s) {\n  status = luaD_rawrunprotected(L, resume, s);\n  status = precover(s);\n}\n\n"
        "int luaD_closeprotected (S *s) {\n    L->ci = old_ci;\n}\n\n"
        "int luaD_pcall (S *s) {\n    L->ci = old_ci;\n}\n",
    "src/lfunc.c": "Proto *luaF_newproto (S *s) {\n  f->source = NULL;\n}\n",
    "src/lobject.h": "typedef struct Proto {\n  Object *gclist;\n} Proto;\n",
    "src/lstate.c":
        "static void preinit_thread (S *s) {\n  L->hook = NULL;\n  L->openupval = NULL;\n}\n\n"
        "static void close_state (S *s) {\n    L->ci = &L->base_ci;\n}\n\n"
        "int luaE_resetthread (S *s) {\n  Frame *ci = L->ci = &L->base_ci;\n}\n\n"
        "S *lua_newstate (A a) {\n  g->ud_warn = NULL;\n}\n",
    "src/lstate.h":
        "#ifndef lstate_h\n#define lstate_h\ntypedef struct CallInfo {\n  int x;\n} CallInfo;\n\ntypedef struct G {\n  void *ud_warn;\n} G;\n\n"
        "struct lua_State {\n  lu_byte allowhook;\n  int hookmask;\n};\n\n#endif\n",
    "src/lvm.c":
        "#define updatetrap(ci)  (trap = ci->trap)\n\nvoid luaV_execute (S *s) {\n#if LUA_USE_JUMPTABLE\n#endif\n startfunc:\n"
        "  trap = L->hookmask;\n  vmcase(OP_RETURN0) {\n    L->ci = ci->previous;\n  }\n"
        "  vmcase(OP_RETURN1) {\n    L->ci = ci->previous;\n  }\n}\n",
}


class Insert(InsertionTests, unittest.TestCase):
    TOOL = sys.argv.pop(1)
    TREE = TREE
    COPIED = "src/incstack/adapter.c"
    ONE = "src/ldo.c"
    LAST = "src/lua.c"
    OLDER = ("src/lobject.h", "unsigned int incstack_number", "unsigned long incstack_number")
    UNEXPECTED = (
        ("src/lvm.c", "vmcase(OP_RETURN0)", "vmcase(OP_RETURN2)"),
        ("src/lvm.c", " (trap = ci->trap)", " (look_at(ci))"),
        ("src/lvm.c", "vmcase(OP_RETURN1) {\n", "vmcase(OP_RETURN1) {\n    L->ci = ci->previous;\n"),
        ("src/ldo.c", "int luaD_pcall (", "int luaD_xpcall ("),
        ("src/ldo.c", "  status = precover(s);\n", "  recover(s);\n"),
        ("src/lstate.h", "hookmask", "hooks"),
        ("src/lcorolib.c", "static int luaB_close (", "static int luaB_end ("))

    def test_each_place_gets_its_line(self):
        self.insert(self.tree)
        now = self.read()
        for name in TREE:
            if name != "src/lua.h":
                self.assertIn("incstack", now[name], name)
        self.assertRegex(now["src/lstate.h"], r'};\n\n/\* incstack\{ \*/\n#include "incstack/incstack_lua.h"'
                                              r"\n/\* \}incstack \*/\n#endif\n$")
        self.assertRegex(now["src/lstate.h"], r"incstack_from; size_t incstack_marks;"
                                              r"\n/\* \}incstack \*/\n  int hookmask")
        self.assertIn("(trap = /* incstack{ */ incstack_lua_wanted() | /* }incstack */ ci->trap)",
                      now["src/lvm.c"])
        self.assertIn("trap = /* incstack{ */ incstack_lua_wanted() | /* }incstack */ L->hookmask",
                      now["src/lvm.c"])
        self.assertEqual(now["src/lvm.c"].count("ci->previous;\n/* incstack{ */\n"), 2)
        self.assertIn("if (/* incstack{ */ !(incstack_lua_wanted() && incstack_lua_poll(L, pc + 1)) && "
                      "/* }incstack */ !(mask & LINES)) {", now["src/ldebug.c"])
        self.assertRegex(now["src/ldo.c"], r"popped\(L, old_ci\);\n/\* \}incstack \*/\n    L->ci = old_ci;")
        self.assertRegex(now["src/ldo.c"], r"popped\(L, ci\);\n/\* \}incstack \*/\n    L->ci = ci;")
        self.assertRegex(now["src/ldo.c"], r"resumes\(L, 0\);\n/\* \}incstack \*/\n  status = luaD_raw")
        self.assertRegex(now["src/ldo.c"], r"precover\(s\);\n/\* incstack\{ \*/\n  incstack_lua_leave")
        self.assertRegex(now["src/lstate.c"], r"incstack_lua_close\(L\);\n/\* \}incstack \*/\n    L->ci = &")
        self.assertRegex(now["src/lua.c"], r"openlibs\(L\);\n/\* incstack\{ \*/\n  incstack_lua_start")

    def test_another_version_is_refused(self):
        self.edit("src/lua.h", '"4"', '"3"')
        self.assertIn("src/lua.h: this is Lua 5.3;", self.refuse(self.tree))
        self.edit("src/lua.h", "LUA_VERSION_MINOR", "LUA_MINOR")
        self.assertIn("src/lua.h: this is Lua unknown;", self.refuse(self.tree))


if __name__ == "__main__":
    unittest.main()
