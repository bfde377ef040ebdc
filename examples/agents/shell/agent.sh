#!/bin/sh
# An agent of one's own with curl and jq: the doors are plain HTTP, the tools plain JSON.
set -eu
ask() { curl -sS --fail-with-body -H "Authorization: Bearer $PROCTOR_TOKEN" -H "Content-Type: application/json" "$@"; }
whole='def add($e): if $e.type == "message_start" then $e.message
  elif $e.type == "content_block_start" then .content[$e.index] = $e.content_block
  elif $e.delta.type == "text_delta" then .content[$e.index].text += $e.delta.text
  elif $e.delta.type == "input_json_delta" then .content[$e.index].json += $e.delta.partial_json
  elif $e.type == "message_delta" then .stop_reason = $e.delta.stop_reason else . end;
  reduce .[] as $e ({}; add($e)) | .content[] |= if .json then .input = (.json | fromjson) | del(.json) else . end'
ask "$PROCTOR_GATEWAY/brief" | jq '{model, system, max_tokens: 8192, stream: true,
  messages: [{role: "user", content: .prompt}]}' > ask.json
ask "$PROCTOR_GATEWAY/tools" | jq '{tools: [.tools[] | {name, description, input_schema: .inputSchema}]}' > tools.json
jq -s add tools.json ask.json > next.json
while mv next.json ask.json && ask "$PROCTOR_GATEWAY/v1/messages" -d @ask.json > stream.txt; do
  sed -n 's/^data: //p' stream.txt | jq -s "$whole" > reply.json
  jq -j '.content[] | select(.type == "text").text' reply.json > answer.txt
  [ "$(jq -r .stop_reason reply.json)" = tool_use ] || break
  jq -c '.content[] | select(.type == "tool_use")' reply.json | while read -r call; do
    printf '%s' "$call" | jq .input > input.json
    ask "$PROCTOR_GATEWAY/tools/$(printf '%s' "$call" | jq -r '.name | @uri')" -d @input.json |
      jq --argjson call "$call" '{type: "tool_result", tool_use_id: $call.id, is_error: (.isError // false),
        content: [.content[] | {type: "text", text: (.text // tojson)}]}'
  done | jq -s . > results.json
  jq --slurpfile reply reply.json --slurpfile results results.json '.messages += [{role: "assistant",
    content: $reply[0].content}, {role: "user", content: $results[0]}]' ask.json > next.json
done
[ ! -s answer.txt ] || ask -T answer.txt "$PROCTOR_GATEWAY/answer"
