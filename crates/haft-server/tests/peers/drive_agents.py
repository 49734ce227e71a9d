"""Drives agents with the official client of OpenAI; prints what it reads as JSON.

The arguments are the address of haft and a token.
"""

import json
import sys

import openai

address, token = sys.argv[1:]
client = openai.OpenAI(base_url=f"{address}/v1", api_key=token, max_retries=2, timeout=30)
question = [{"role": "user", "content": "double it"}]
read = {}

read["models"] = sorted(model.id for model in client.models.list())
read["model"] = client.models.retrieve("helper").id

whole = client.chat.completions.create(model="helper", messages=question)
read["chat"] = whole.choices[0].message.content
read["chat_finish"] = whole.choices[0].finish_reason

parts, usage = [], False
options = {"include_usage": True}
for chunk in client.chat.completions.create(model="helper", messages=question, stream=True, stream_options=options):
    if chunk.choices and chunk.choices[0].delta.content:
        parts.append(chunk.choices[0].delta.content)
    usage = usage or chunk.usage is not None
read["chat_stream"] = "".join(parts)
read["chat_stream_usage"] = usage
with client.chat.completions.stream(model="helper", messages=question) as stream:
    read["chat_final"] = stream.get_final_completion().choices[0].message.content

schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
thought = client.chat.completions.create(
    model="thinker",
    messages=[{"role": "developer", "content": "Only JSON."}, {"role": "user", "content": "x"}],
    response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": schema}},
)
read["reasoning"] = thought.choices[0].message.reasoning_content
read["parsed"] = json.loads(thought.choices[0].message.content)

pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": pixel}}]
seen = client.chat.completions.create(model="helper", messages=[{"role": "user", "content": parts}])
read["image"] = seen.choices[0].message.content

response = client.responses.create(model="helper", input="double it", instructions="Be brief.")
read["response"] = response.output_text
read["response_retrieved"] = client.responses.retrieve(response.id).status
parts = []
for event in client.responses.create(model="helper", input="double it", stream=True):
    if event.type == "response.output_text.delta":
        parts.append(event.delta)
    if event.type == "response.completed":
        read["response_final"] = event.response.status
read["response_stream"] = "".join(parts)
with client.responses.stream(model="helper", input="hello", previous_response_id=response.id) as stream:
    read["response_continued"] = stream.get_final_response().output_text
read["response_failed"] = client.responses.create(model="broken", input="x").status

errors = read["errors"] = {}


def fails(name, work):
    try:
        work()
        errors[name] = "no error"
    except openai.APIStatusError as error:
        shown = [type(error).__name__, error.code, error.param]
        errors[name] = " ".join(part for part in shown if part)
    except openai.APIError as error:
        errors[name] = type(error).__name__


stranger = openai.OpenAI(base_url=f"{address}/v1", api_key="wrong", max_retries=0)
fails("401", stranger.models.list)
fails("404", lambda: client.chat.completions.create(model="nobody", messages=question))
errors["404"] = errors["404"].removesuffix(" model")
fails("400", lambda: client.chat.completions.create(model="helper", messages=question, n=2))
tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
fails("tools", lambda: client.chat.completions.create(model="helper", messages=question, tools=tools))

# A run that failed is not repeated by the client.
count = 0
try:
    client.chat.completions.with_raw_response.create(model="broken", messages=question)
except openai.APIStatusError as error:
    count = 1 + int(error.request.headers.get("x-stainless-retry-count", "0"))
    errors["run"] = f"{type(error).__name__} {count}"


def read_all():
    for _ in client.chat.completions.create(model="broken", messages=question, stream=True):
        pass


fails("stream", read_all)
print(json.dumps(read))
