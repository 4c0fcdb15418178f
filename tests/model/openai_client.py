"""What a user of the openai package would write. Prints what it saw as JSON."""

import json
import sys

from openai import OpenAI

url, key = sys.argv[1:]
client = OpenAI(base_url=url, api_key=key)
ask = {
    "model": "smollm2",
    "messages": [{"role": "user", "content": "What is the capital of France?"}],
    "temperature": 0,
    "max_tokens": 6,
}
whole = client.chat.completions.create(**ask, logprobs=True, top_logprobs=2)
choice = whole.choices[0]
streamed, usage = "", None
for chunk in client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}):
    if chunk.choices and chunk.choices[0].delta.content:
        streamed += chunk.choices[0].delta.content
    usage = chunk.usage or usage
several = client.chat.completions.create(**{**ask, "temperature": 1.0, "seed": 7}, n=3)
stopped = client.chat.completions.create(**ask, stop=["France"])
print(
    json.dumps(
        {
            "models": [model.id for model in client.models.list()],
            "text": choice.message.content,
            "finish": choice.finish_reason,
            "completion_tokens": whole.usage.completion_tokens,
            "logprobs": len(choice.logprobs.content),
            "top": len(choice.logprobs.content[0].top_logprobs),
            "highest_logprob": max(token.logprob for token in choice.logprobs.content),
            "streamed": streamed,
            "stream_completion_tokens": usage.completion_tokens,
            "answers": len(several.choices),
            "stopped": stopped.choices[0].message.content,
        }
    )
)
