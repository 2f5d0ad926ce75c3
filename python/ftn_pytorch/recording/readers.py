# SPDX-License-Identifier: MIT
"""What code mentions, or holds, that reads values without naming them."""

from __future__ import annotations

import operator
from types import BuiltinFunctionType, MemberDescriptorType, MethodWrapperType

ASKING = frozenset(("getattr", "hasattr", "AttributeError", "__dict__", "vars", "attrgetter"))
"""May ask for an attribute that is not there."""
PAST_READS = frozenset(("__get__", "__getattribute__", "getattr_static"))
"""Reads fields where nobody who looks on is told."""
BY_TEXT = PAST_READS | {"globals", "locals", "eval", "exec"}
"""Reads names, too."""
OF_UNSEEN = frozenset(("vars", "__dict__", "getattr", "attrgetter", "cell_contents"))
"""Reads by a text what is in objects on which nobody can look."""
IN_TEXTS = frozenset(("format", "format_map"))
SEES_RECORDER = frozenset(("getprofile", "getrefcount", "get_referrers"))
OF_C = (BuiltinFunctionType, operator.attrgetter, operator.methodcaller)
"""Counts as mentioned by its own name, whatever name leads to it."""
DESCRIPTORS = (MemberDescriptorType, MethodWrapperType, operator.methodcaller)
"""Can get a slot of an object of which nothing is asked then."""
