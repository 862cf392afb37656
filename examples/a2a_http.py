"""Two A2A agents over HTTP on this machine: a hotel that reads payloads, and a travel agent that sends them.

Run it: python examples/a2a_http.py
"""

from __future__ import annotations

import asyncio
import socket

import uvicorn
from a2a.client import ClientConfig, create_client
from a2a.server.agent_execution import RequestContext
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Message, Role, SendMessageRequest
from starlette.applications import Starlette

import silp
from silp.carriage.a2a import SilpExecutor, SilpInterceptor, SilpLayer, declare, ir_parts, part_of
from silp.carriage.envelope import Unwrapped


class Hotel(SilpExecutor):
    async def run(self, payloads: list[Unwrapped], context: RequestContext, task: TaskUpdater) -> None:
        for opened in payloads:
            answer = silp.decode(f"notify(booked,for={opened.ir.intent[1:].lower()})")
            await task.add_artifact([part_of(answer)])
        await task.complete()


def card_of(port: int, binding: str = "JSONRPC") -> AgentCard:
    card = AgentCard(
        name="hotel",
        description="Books rooms",
        version="1",
        supported_interfaces=[
            AgentInterface(protocol_binding=binding, protocol_version="1.0", url=f"http://127.0.0.1:{port}")
        ],
        capabilities=AgentCapabilities(),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="book", name="book", description="Books a room", tags=["rooms"])],
    )
    declare(card)
    return card


def application(card: AgentCard, executor: SilpExecutor) -> SilpLayer:
    handler = DefaultRequestHandler(agent_executor=executor, task_store=InMemoryTaskStore(), agent_card=card)
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/"), *create_rest_routes(handler)]
    return SilpLayer(Starlette(routes=routes))


async def travel_agent(card: AgentCard) -> None:
    client = await create_client(card, ClientConfig(streaming=False), interceptors=[SilpInterceptor()])
    ir = silp.decode("if budget<=500: book(room,city=Bern,nights=2)")
    message = Message(message_id="1", role=Role.ROLE_USER, parts=[part_of(ir)])
    print(f"asks: {message.parts[0].text}")
    async for response in client.send_message(SendMessageRequest(message=message)):
        for artifact in response.task.artifacts:
            for opened in ir_parts(artifact):
                print(f"the hotel answers in {opened.frontend}: {opened.payload}")
    await client.close()


async def main() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    card = card_of(port)
    server = uvicorn.Server(uvicorn.Config(application(card, Hotel(card)), port=port, log_level="error"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    await travel_agent(card)
    server.should_exit = True
    await serving


if __name__ == "__main__":
    asyncio.run(main())
