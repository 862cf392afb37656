"""IRs as the output of pydantic-ai agents. Needs the extra `silp-codec[pydantic-ai]`.

Lives here: an output type that reads a payload, and asks the model again when it cannot be read.
"""

from __future__ import annotations

from silp.errors import SilpError
from silp.ir import SilpIR
from silp.receiving import Policy, receive

try:
    from pydantic_ai import ModelRetry, TextOutput
except ImportError as error:
    raise ImportError("silp.carriage.pydantic_ai needs the extra: pip install 'silp-codec[pydantic-ai]'") from error

__all__ = ["payload_output"]


def payload_output(frontend: str | None = None, *, policy: Policy | None = None) -> TextOutput[SilpIR]:
    """Return an `output_type` for an Agent: the model writes a payload, the agent returns its IR.

    The text goes through `silp.receive`, with spaces and line breaks around it removed. What it refuses is told to the
    model, with the place and what to do, as often as the agent's retries allow; then pydantic-ai raises
    UnexpectedModelBehavior.
    """

    def read(text: str) -> SilpIR:
        try:
            return receive(text.strip(), frontend, policy=policy).ir
        except SilpError as error:
            raise ModelRetry(
                f"This is no SILP payload: {error}\nWrite the corrected payload and nothing else."
            ) from error

    return TextOutput(read)
