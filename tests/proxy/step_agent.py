#!/usr/bin/env python3
"""An agent of a few lines with pydantic-ai, with one tool and its defaults.

usage: step_agent.py BASE_URL TASK
"""
import subprocess, sys

from anthropic import AsyncAnthropic
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.usage import UsageLimits

client = AsyncAnthropic(base_url=sys.argv[1], api_key="sk-test", max_retries=0)
agent = Agent(AnthropicModel("claude-sonnet-4-5", provider=AnthropicProvider(anthropic_client=client)))


@agent.tool_plain
def bash(command: str) -> str:
    """Runs a command in bash and returns its output."""
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True).stdout


print(agent.run_sync(sys.argv[2], usage_limits=UsageLimits(request_limit=1000)).output)
