"""Providers that no wire of Halo's own speaks, through the model layer of pydantic-ai (tools.md §4).

Owns the translation of a request and of a reply, and the meaning of that library's errors. Keeps its retries off, and
always sends `max_tokens`. What such a provider is sent is not ours to the byte: tools go without "strict" schemas, but
some providers' own limits on schemas are applied by the library. Imports it only when a program names such a provider.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..boundary.attempt import AttemptFailed
from ..boundary.call import Answer, Message, ModelRequest, ToolUse, Usage
from ..boundary.host import ConfigError, Environment
from ..boundary.prompt import frame_key, framed_system, framed_text
from .providers import Endpoint, unknown_provider
from .reply import CUT, REFUSED, STOPPED, answer, clean, mended, read_arguments, spare_id, tool_use

if TYPE_CHECKING:
    from pydantic_ai import messages as parts
    from pydantic_ai.models import Model

_SECRETS = ("_KEY", "_KEY_ID", "_TOKEN", "_REGION")
_ENDINGS = {"length": CUT, "content_filter": REFUSED}


class Adapted:
    """One model of such a provider."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._open = False

    async def attempt(self, request: ModelRequest, watch: Callable[[str], None] | None) -> Answer:
        """As `ModelClient.attempt`."""
        from pydantic_ai.exceptions import AgentRunError, ContentFilterError, UnexpectedModelBehavior, UserError
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.settings import ModelSettings
        from pydantic_ai.tools import ToolDefinition

        offered = [
            ToolDefinition(name=t.name, description=t.about, parameters_json_schema=t.schema, strict=False)
            for t in request.tools
        ]
        settings = ModelSettings(max_tokens=request.max_tokens, max_retries=0, timeout=request.timeout_s)
        if request.temperature is not None:
            settings["temperature"] = request.temperature
        if request.top_p is not None:
            settings["top_p"] = request.top_p
        try:
            response = await self._response(
                _conversation(request), settings, ModelRequestParameters(function_tools=offered), watch
            )
        except ContentFilterError as error:
            return answer(request, None, "", (), None, REFUSED, clean(str(error)))
        except UnexpectedModelBehavior as error:
            raise AttemptFailed("MODEL_ERROR", f"{request.model}: {clean(str(error))}") from None
        except AgentRunError as error:
            raise _failure(error, request) from None
        except UserError as error:
            raise AttemptFailed("MODEL_ERROR", f"{request.model}: {clean(str(error))}", billed=False) from None
        return _answer(response, request)

    async def _response(
        self,
        conversation: list[parts.ModelMessage],
        settings: Any,
        parameters: Any,
        watch: Callable[[str], None] | None,
    ) -> parts.ModelResponse:
        from pydantic_ai.direct import model_request, model_request_stream
        from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

        if watch is None:
            return await model_request(
                self._model, conversation, model_settings=settings, model_request_parameters=parameters
            )
        async with model_request_stream(
            self._model, conversation, model_settings=settings, model_request_parameters=parameters
        ) as stream:
            async for event in stream:
                if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                    watch(mended(event.part.content))
                elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                    watch(mended(event.delta.content_delta))
            return stream.get()

    async def close(self) -> None:
        """Nothing: the library shares its connections among all that use it, and closes them with the process."""


def adapted(found: Endpoint, environment: Environment, configured: Mapping[str, Mapping[str, str]]) -> Adapted:
    """The model of an endpoint. Raises `ConfigError`: the extra is missing, no such provider, no key."""
    near = unknown_provider(found.provider, configured)
    if find_spec("pydantic_ai") is None:
        raise ConfigError(
            f"`{found.model}`: Halo itself does not speak to `{found.provider}`{near}. Other providers come with "
            f"`pip install 'halo-lang[providers]'`; a server that speaks OpenAI's protocol can be named in halo.toml "
            f"as [models.{found.provider}]"
        )
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model

    try:
        with _project_keys(environment):
            return Adapted(infer_model(f"{found.provider}:{found.name}"))
    except (UserError, ValueError, ImportError) as error:
        raise ConfigError(f"`{found.model}`: {clean(str(error))}{near}") from None


@contextmanager
def _project_keys(environment: Environment) -> Iterator[None]:
    """Lets the library find the keys in the project's .env while it makes a client. Only keys: an address that the
    project names is never put beside a key of the user's."""
    own = {
        name: value
        for name, value in environment.project.items()
        if value and name.endswith(_SECRETS) and not os.environ.get(name)
    }
    os.environ.update(own)
    try:
        yield
    finally:
        for name in own:
            os.environ.pop(name, None)


def _conversation(request: ModelRequest) -> list[parts.ModelMessage]:
    from pydantic_ai import messages as parts

    key = frame_key(request)
    names = {u.id: u.name for m in request.messages for u in m.tool_uses}
    system = framed_system(request, key)
    asked: list[Any] = [parts.SystemPromptPart(system)] if system else []
    conversation: list[parts.ModelMessage] = []
    for message in request.messages:
        if message.role == "assistant":
            if asked:
                conversation.append(parts.ModelRequest(asked))
                asked = []
            conversation.append(parts.ModelResponse(_said(message, key)))
        elif message.role == "tool":
            asked.append(
                parts.ToolReturnPart(
                    tool_name=names.get(message.tool_use_id, ""),
                    content=framed_text(message, key),
                    tool_call_id=message.tool_use_id,
                    outcome="failed" if message.failed else "success",
                )
            )
        else:
            asked.append(parts.UserPromptPart(framed_text(message, key)))
    if asked:
        conversation.append(parts.ModelRequest(asked))
    return conversation


def _said(message: Message, key: str | None) -> list[parts.ModelResponsePart]:
    from pydantic_ai import messages as parts

    text = framed_text(message, key)
    said: list[parts.ModelResponsePart] = [parts.TextPart(text)] if text else []
    said += [parts.ToolCallPart(u.name, read_arguments(u), tool_call_id=u.id) for u in message.tool_uses]
    return said


def _answer(response: parts.ModelResponse, request: ModelRequest) -> Answer:
    from pydantic_ai import messages as parts

    texts = [p.content for p in response.parts if isinstance(p, parts.TextPart)]
    uses: list[ToolUse] = [
        tool_use(p.tool_call_id, p.tool_name, p.args, spare_id(request, at))
        for at, p in enumerate(p for p in response.parts if isinstance(p, parts.ToolCallPart))
    ]
    used = response.usage
    counted = Usage(used.input_tokens, used.output_tokens, used.cache_read_tokens, used.cache_write_tokens)
    usage = counted if used.has_values() else None
    ending = _ENDINGS.get(response.finish_reason or "", STOPPED)
    return answer(request, response.model_name, "".join(texts), uses, usage, ending)


def _failure(error: Exception, request: ModelRequest) -> AttemptFailed:
    from pydantic_ai import exceptions as they

    message = f"{request.model}: {clean(str(error))}"
    wait = getattr(error, "retry_after", None)
    status = getattr(error, "status_code", None)
    in_stream = bool(getattr(error, "in_stream", False))
    if isinstance(error, they.ModelTimeoutError):
        return AttemptFailed("MODEL_TIMEOUT", message, retry=True)
    if isinstance(error, they.ModelConnectionError):
        return AttemptFailed("MODEL_ERROR", message, retry=True)
    passing = isinstance(error, they.ModelRateLimitError | they.ModelUnavailableError | they.ModelServerError)
    refused = isinstance(status, int) and status >= 400 and not in_stream
    return AttemptFailed("MODEL_ERROR", message, passing, False if refused else None, wait)
