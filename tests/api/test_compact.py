"""`agent_tui.compact`: anybody's list of messages, in either shape, in this process."""

import asyncio
import json
from typing import Any

import pytest

import agent_tui
from agent_tui.providers.wires.chat.messages import openai_messages
from tests.support.openai_server import ...
