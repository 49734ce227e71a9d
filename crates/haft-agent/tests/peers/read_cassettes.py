"""Reads the cassettes with the official clients of OpenAI and Anthropic; prints what they read as JSON.

The argument is the address of the server that serves the cassettes.
"""

import json
import sys

import anthropic
import openai

address = sys.argv[1]
read = {}

client = openai.OpenAI(base_url=f"{address}/v1", api_key="sk-test", max_retries=0, timeout=10)
messages = [{"role": "user", "content": "Weather?"}]


def chat(name, message, usage):
    calls = [[call.id, call.function.name, json.loads(call.function.arguments)] for call in message.tool_calls]
    read[name] = {"text": message.content, "calls": calls, "input": usage.prompt_tokens, "output": usage.completion_tokens}


whole = client.chat.completions.create(model="gpt-4.1", messages=messages)
chat("chat_whole", whole.choices[0].message, whole.usage)
with client.chat.completions.stream(
    model="gpt-4.1", messages=messages, stream_options={"include_usage": True}
) as stream:
    final = stream.get_final_completion()
chat("chat_stream", final.choices[0].message, final.usage)


def response(name, body):
    calls = [[item.call_id, item.name, json.loads(item.arguments)] for item in body.output if item.type == "function_call"]
    reasoning = "\n\n".join(part.text for item in body.output if item.type == "reasoning" for part in item.summary)
    usage = body.usage
    read[name] = {
        "text": body.output_text,
        "reasoning": reasoning,
        "calls": calls,
        "input": usage.input_tokens,
        "output": usage.output_tokens,
    }


response("responses_whole", client.responses.create(model="gpt-5", input="Weather?"))
with client.responses.stream(model="gpt-5", input="Weather?") as stream:
    response("responses_stream", stream.get_final_response())

claude = anthropic.Anthropic(base_url=address, api_key="sk-ant-test", max_retries=0, timeout=10)


def message(name, body):
    usage = body.usage
    read[name] = {
        "text": "".join(block.text for block in body.content if block.type == "text"),
        "reasoning": "".join(block.thinking for block in body.content if block.type == "thinking"),
        "calls": [[block.id, block.name, block.input] for block in body.content if block.type == "tool_use"],
        "input": usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens,
        "output": usage.output_tokens,
    }


message("anthropic_whole", claude.messages.create(model="claude-sonnet-5", max_tokens=100, messages=messages))
with claude.messages.stream(model="claude-sonnet-5", max_tokens=100, messages=messages) as stream:
    message("anthropic_stream", stream.get_final_message())

for status, client_error in (("401", openai.AuthenticationError), ("429", openai.RateLimitError)):
    try:
        openai.OpenAI(base_url=f"{address}/{status}", api_key="sk-test", max_retries=0).responses.create(
            model="gpt-5", input="x"
        )
    except client_error as error:
        read[f"openai_{status}"] = {"message": error.body["message"]}
try:
    anthropic.Anthropic(base_url=f"{address}/529", api_key="x", max_retries=0).messages.create(
        model="claude-sonnet-5", max_tokens=100, messages=messages
    )
except anthropic.InternalServerError as error:
    read["anthropic_529"] = {"message": error.body["error"]["message"]}

print(json.dumps(read))
