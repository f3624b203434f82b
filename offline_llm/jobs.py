"""Which role and job a request is: by the name of the wanted schema, else it is the agent."""

import json
from collections.abc import Callable
from typing import Any

from offline_llm.generator import server_goals
from offline_llm.generator.agent import write_agent
from offline_llm.generator.attack import write_attack
from offline_llm.generator.brief import read_brief, write_brief
from offline_llm.generator.issue import write_issue
from offline_llm.generator.persona import write_persona
from offline_llm.rewriter.reading import genre_asked
from offline_llm.rewriter.rewrite import request_of, rewrite
from offline_llm.roles import dual_control
from offline_llm.roles.agent import agent
from offline_llm.roles.claims_judge import judge_claims
from offline_llm.roles.faults import paraphrase, second_reading, write_fault
from offline_llm.roles.judge import cause, judge
from offline_llm.roles.safety_judge import judge_safety
from offline_llm.roles.user import user_turn
from offline_llm.server.request import ChatRequest
from offline_llm.server.response import Reply
from offline_llm.server.sampling import conform, sample
from offline_llm.settings.settings import OfflineSettings
from offline_llm.simulator.call import simulate_call
from offline_llm.simulator.sketch import write_environment
from offline_llm.tools.operators.domain import write_domain
from offline_llm.tools.operators.job import write_tools
from offline_llm.tools.operators.jobs import write_jobs
from offline_llm.tools.operators.policy import write_rules

Job = Callable[[ChatRequest, OfflineSettings], Any]

_JOBS: dict[str, Job] = {
    "agent": write_agent,
    "persona": write_persona,
    "brief": write_brief,
    "brief_reading": read_brief,
    "issue": write_issue,
    "calls": server_goals.look_at_server,
    "goals": server_goals.server_goals,
    "told": server_goals.read_goals,
    "user_form": server_goals.fill_in_form,
    "tools": write_tools,
    "domain": write_domain,
    "rules": write_rules,
    "jobs": write_jobs,
    "user_turn": user_turn,
    "judgement": judge,
    "cause": cause,
    "written_fault": write_fault,
    "paraphrase": paraphrase,
    "second_reading": second_reading,
    "claims": judge_claims,
    "safety_attack": write_attack,
    "safety_verdicts": judge_safety,
    "simulate_call": simulate_call,
    "world_sketch": write_environment,
}


def answer_of(request: ChatRequest, settings: OfflineSettings) -> Reply:
    schema, text = request.json_schema, request.messages[-1]["content"]
    if schema is None and dual_control.users_turn(request):
        return dual_control.act(request)
    if schema is None and (genre := genre_asked(request)) is not None:
        return Reply(genre)
    if schema is None and (wanted := request_of(request)) is not None:
        return rewrite(request, wanted, settings)
    if schema is None:
        return agent(request, settings)
    job = _JOBS.get(request.schema_name or "")
    made = conform(job(request, settings), schema, text) if job else sample(schema, text)
    return Reply(json.dumps(made, ensure_ascii=False))
