# SPDX-License-Identifier: BSD-3-Clause
"""Our chat templates against Jinja itself, set up as transformers sets it up."""

from __future__ import annotations

import json
import os
import pathlib
import struct

import jinja2
import jinja2.ext
import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tokenizer_texts import run, u32s

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / os.environ.get("PTERO_BUILD_DIR", "build/ci") / "tests/tokenize"

TOOLS = [{"type": "function", "function": {
    "name": "weather", "description": "\"Weather\" <now> & é\n", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": ["integer",
                                                                                       "null"]}},
        "required": ["city"]}}}]
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": {
    "name": "weather", "arguments": {"city": "Köln", "days": 2, "x": [1, 2.5, 1e20, True, None]}}}]}
CONVERSATIONS = [
    [], [{"role": "user", "content": "  Hello <b>\n"}],
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi 😀"},
     {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHey"},
     {"role": "user", "content": ""}],
    [{"role": "user", "content": [{"type": "text", "text": "a "}, {"type": "image"}]}],
    [{"role": "user", "content": "w?"}, CALL, {"role": "tool", "content": "{\"t\": 20}"}],
    [{"role": "assistant", "content": "first"}, {"role": "nobody", "content": "x"}]]
VARIABLES = [{}, {"add_generation_prompt": False, "enable_thinking": True}]

# In the manner of the templates that models bring.
CHAT = [
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nDefault<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + "
    "'\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != "
    "(loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate!') }}{% endif %}"
    "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] | trim + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token }}{% endif %}"
    "{% endfor %}",
    """{%- set ns = namespace(system='', last=-1) %}
{%- for m in messages %}
    {%- if m.role == "system" %}
        {%- set ns.system = ns.system ~ m.content %}
    {%- endif %}
    {%- if m.role == 'user' and not (m.content is string and m.content.startswith('<tool>')) %}
        {%- set ns.last = loop.index0 %}
    {%- endif %}
{%- endfor %}
{%- if tools %}
{{- '<tools>' }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
        {{- tool.function | tojson(indent=4) }}
    {%- endfor %}
{{- '\\n</tools>' }}
{%- endif %}
{%- for message in messages[1:] if message.content is not none %}
    {%- if message.content is string %}
        {%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}
    {%- else %}
        {%- set content = message.content | selectattr('type', 'equalto', 'text')
                                          | map(attribute='text') | join('|') %}
    {%- endif %}
    {{- '<' ~ loop.index ~ '/' ~ loop.length ~ '>' ~ content }}
    {%- for call in message.tool_calls %}{{ call.function.name }}{% endfor %}
{%- else %}
    {{- 'nothing' }}
{%- endfor %}
{{- ns.last }}{{ enable_thinking is defined and enable_thinking is true }}""",
    """{% macro show(value, depth=0, open='{') -%}
  {% if value is mapping %}
    {{- open }}{% for k, v in value | dictsort %}{{ k }}:{{ show(v, depth + 1, open=open) }}
    {%- if not loop.last %}, {% endif %}{% endfor %}{{ '}' -}}
  {% elif value is sequence and value is not string %}
    {{- value | length }}[{% for v in value %}{{ show(v, depth + 1) }};{% endfor %}]
  {%- else %}{{ value }}{{ '' if value else '?' }}{% endif %}
{%- endmacro %}
{% for m in messages %}
{{ m.role | upper }}: {{ show(m) }} {{ loop.cycle('odd', 'even') }} {{ m }}
{% endfor %}
{% generation %}g{% endgeneration %}""",
    """{% for m in messages %}
{% if m.role == 'tool' %}{% continue %}{% endif %}
{% if loop.index > 3 %}{% break %}{% endif %}
{{ loop.revindex }} {{ loop.previtem.role }} {{ loop.nextitem.role | default('end', true) }}
{%+ if m.tool_calls is defined %}{{ m.tool_calls[0].function.arguments | tojson }}
{{ m.tool_calls[0].function.arguments.items() | list | length }}
{% for k, v in m.tool_calls[0].function.arguments.items() %}{{ k }}={{ v | string }} {% endfor %}
{% endif +%}
{% endfor %}
{% set block %}a {{ messages | length }} {% endset %}{{ block | trim }}|{{ block }}|""",
]
# One feature each. Tuples print as lists here, and integers have 64 bits.
EXPRESSIONS = r"""1 + 2 * 3 ** 2|7 // -2|-7 // 2|-7 % 3|7 % -3|7 / 2|2 ** -1|1.5 * 2|10.0 ** 20 / 3.0|1e16|1e-5|0.1 + 0.2
'a' + 'b'|'a' ~ 1 ~ none ~ true|'ab' * 3|[1] + [2]|1 == 1.0|true == 1|'a' < 'b'|1 < 2 < 3|3 > 2 > 2
'a' in 'cat'|1 in [1, 2]|'k' in {'k': 1}|1 not in [2]|not 1 in [2]|not true or true|1 and 0 or 'x'
'x' if false else 'y'|'x' if false|[1, 'a', none, 1.0, {'k': "it's"}]|("a", "b") | tojson|{'a': {'b': [1]}}|'"' ~ ['"', "'"]
'hello'[1]|'hello'[-1]|'hello'[1:3]|'hello'[::-1]|'hello'[-3:]|'hé😀o'[1:3]|[1, 2, 3, 4][::2]|[1, 2, 3][5:]|[1, 2][9]|'abc'[-100:2]
' a b '.strip()|'xxaxx'.strip('x')|'a,b,,c'.split(',')|' a  b '.split()|'a b c'.split(' ', 1)|'a\nb'.splitlines()
'Hello'.upper()|'HELLO'.lower()|'hello world'.title()|'hELLO'.capitalize()|'abc'.replace('b', 'x')|'aaa'.replace('a', 'b', 2)
'abc'.startswith('a')|'abc'.endswith(('x', 'c'))|'abc'.find('c')|'abcabc'.count('a')|'-'.join(['a', 'b'])|'123'.isdigit()
{'a': 1}.get('a')|{'a': 1}.get('b', 2)|{'a': 1}.items() | list | tojson|{'a': 1, 'b': 2}.keys() | list|{'a': 1}.values() | list
' a ' | trim|'abc' | length|[1, 2] | length|{'a': 1} | length|'abc' | first|[1, 2] | last|[] | first|'b,a' | replace(',', ';')
[3, 1, 2] | sort|['b', 'A', 'c'] | sort|[3, 1] | sort(reverse=true)|[{'n': 2}, {'n': 1}] | sort(attribute='n')|[1, 1, 2] | unique | list
[1, 2, 3] | sum|[1, 2] | max|[2, 1] | min|[1, 2] | reverse | list|'abc' | reverse|[1, 2] | join(', ')|'3' | int + 1|'x' | int(7)|3.9 | int
'2.5' | float|-3 | abs|x | default('d')|'' | default('d', true)|none | default('d')|'<&>' | escape|'a\nb\n\nc' | indent(2)|'a\nb' | indent(2, true)
[1, 2, 3, 4] | select('odd') | list|[1, 2, 3] | reject('gt', 1) | list|[0, 1] | select | list|['a', 'b'] | map('upper') | join
[{'a': 1}, {'a': 0}] | selectattr('a') | list|[{'a': 1}, {'b': 0}] | rejectattr('a', 'defined') | list|[{'a': {'b': 3}}] | map(attribute='a.b') | list
{'b': 1, 'a': 2} | dictsort | tojson|{'a': 1} | items | list | tojson|'a b' | title|'a B' | capitalize|[1, [2, {'é': '😀\n\t"\\'}]] | tojson|{'a': []} | tojson(indent=2)
1 is odd|2 is even|4 is divisibleby 2|4 is divisibleby(3)|x is defined|x is undefined|none is none|'a' is string|1 is number|1.0 is float
1 is integer|true is boolean|true is integer|true is number|{} is mapping|[] is sequence|'a' is iterable|1 is iterable|1 is eq 1|1 is sameas 1|1 is in [1]
'A' is upper|'a' is lower|not 1 is odd|1 is not even|range(3) | list|range(2, 8, 3) | list|range(3, 0, -1) | list|dict(a=1)|namespace(a=1).a
'a' 'b'|"\u00e9\x41\n\\"|'\''|1_000|true and 'x' is string and not none|(1, 2)[0]|[[1, 2], [3]][0][1]|{'a-b': 1}['a-b']|{1: 'x'}[1]
'%' | length|x|x ~ 'a'|x == none|[x is defined, none]|'ǆ' | upper|'ß' | upper|'ÀÉ'.lower()|'日本' | length|1 if x else 2|(x or 'y') | upper"""


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        parser.stream.skip(1)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def refuse(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                         extensions=[Generation, jinja2.ext.loopcontrols])
    made.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False,
                                                                   indent=indent)
    made.globals["raise_exception"] = refuse
    return made


def theirs(source, messages, tools, variables):
    """The text, or None when Jinja refuses."""
    try:
        return environment().from_string(source).render(messages=messages, tools=tools, **variables)
    except (jinja2.exceptions.TemplateError, TypeError, ValueError, ZeroDivisionError):
        return None


def ours(path, cases):
    data = b""
    for messages, tools, variables in cases:
        for value in (messages, tools, variables):
            text = json.dumps(value).encode()
            data += u32s([len(text)]) + text
    out, at, made = run(PROGRAM, [str(path), "render"], data), 0, []
    while at < len(out):
        status, size = struct.unpack_from("<II", out, at)
        made.append(None if status else out[at + 8:at + 8 + size].decode())
        at += 8 + size
    return made


def check(source, tmp_path, cases):
    path = tmp_path / "template.jinja"
    path.write_bytes(source.encode())
    expected = [theirs(source, *case) for case in cases]
    assert ours(path, cases) == expected
    return expected


@pytest.mark.parametrize("number", range(len(CHAT)))
def test_templates_for_conversations(number, tmp_path):
    base = {"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True}
    cases = [(messages, tools, {**base, **variables}) for messages in CONVERSATIONS
             for tools in (None, TOOLS) for variables in VARIABLES]
    expected = check(CHAT[number], tmp_path, cases)
    assert sum(text is not None for text in expected) >= 4


@pytest.mark.parametrize("line", EXPRESSIONS.splitlines(), ids=range(EXPRESSIONS.count("\n") + 1))
def test_expressions(line, tmp_path):
    for expression in split_expressions(line):
        (expected,) = check("{{ " + expression + " }}", tmp_path, [([], None, {})])
        assert expected is not None or expression in ("1 is iterable",), expression


def split_expressions(line):
    """At bars that are no filters: those with no space around them."""
    return [part.replace("\0", " | ") for part in line.replace(" | ", "\0").split("|")]


def test_what_jinja_refuses_is_refused(tmp_path):
    for source in ("{{ 1 + 'a' }}", "{{ x.y }}", "{{ x.y.z }}", "{{ 1 % 0 }}", "{{ [].append(1) }}",
                   "{{ raise_exception('no') }}", "{{ 'a' | nothing }}", "{% if %}", "{{ 1 2 }}",
                   "{% for x in 5 %}{% endfor %}", "{{ 'a' < 1 }}", "{{ x + 1 }}", "{{ none.a.b }}",
                   "{% endfor %}", "{{ f() }}", "{{ [1, 'a'] | sort }}", "{{ {} + {} }}"):
        assert check(source, tmp_path, [([], None, {})]) == [None], source
