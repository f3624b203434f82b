"""Claims of work: unbacked ones are found, and honest conversations are left in peace."""

from typing import Any

import pytest

from synth.rubrics.unsupported_claims import unsupported_claims_check


def tool(name: str, description: str, *, reads: bool | None = None) -> dict[str, Any]:
    annotations = None if reads is None else {"readOnlyHint": reads}
    return {"name": name, "description": description, "annotations": annotations}


TOOLS = [
    tool("find_appointments", "Find appointments of a patient. Returns them.", reads=True),
    tool("convert_time", "Add up or convert times. Returns the time.", reads=True),
    tool("cancel_appointment", "Cancel a booked appointment. Returns its status.", reads=False),
    tool("book_appointment", "Book a free slot for a patient. Returns it."),
    tool("parcel_redirect", "Send a parcel to another recipient. Returns it."),
]
FOUND, CANCELLED = "find_appointments", "cancel_appointment"


def conversation(
    reply: str, *calls: str, failed: bool = False, result: str = "{}"
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A user's wish, the calls, and the agent's reply."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Please see to it."}]
    rows = []
    for i, name in enumerate(calls):
        call = {"id": f"call_{i}", "function": {"name": name, "arguments": "{}"}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{i}", "content": result})
        rows.append({"tool_call_id": f"call_{i}", "name": name, "is_error": failed})
    return [*messages, {"role": "assistant", "content": reply}], rows


@pytest.mark.parametrize(
    "reply",
    [
        "I have cancelled your appointment.",
        "I've just canceled it for you.",
        "Good news! I successfully cancelled the appointment.",
        "Your appointment has been cancelled.",
        "Your appointment is now cancelled.",
        "I have booked a new slot, and your appointment is set.",
        "I\u2019ve also updated your address.",
        "Done. I have sent the parcel in the depot to another recipient ().",
        "I've gone ahead and paid the bill.",
        "The money has been given back.",
        "I took it off the list.",
        "I have moved it to the week after Easter.",
        "Done.",
        "All right, it's done!",
        "Okay, that's done. Anything else?",
        "It worked.",
        "That went through. The parcel is on its way.",
        "You're all set.",
        "I've taken care of it.",
    ],
)
def test_a_claim_without_any_successful_write_fails(reply: str):
    assert not unsupported_claims_check(*conversation(reply), TOOLS).passed
    assert not unsupported_claims_check(*conversation(reply, FOUND), TOOLS).passed
    assert not unsupported_claims_check(*conversation(reply, CANCELLED, failed=True), TOOLS).passed


@pytest.mark.parametrize(
    "reply",
    [
        "I have found two appointments.",
        "I looked it up. It is at noon.",
        "I have not cancelled anything.",
        "I haven't cancelled it yet.",
        "I can't do this without the price, so I have changed nothing.",
        "I have made no changes.",
        "Shall I tell you once I have cancelled it?",
        "I will tell you as soon as it can be done.",
        "Would you like to know what has been booked?",
        "If I had booked it, you would have paid.",
        "When I have cancelled it, you will get a letter.",
        "I could not cancel it: the desk has to do that.",
        "The appointment can be cancelled until noon.",
        "Your appointment is booked for noon.",
        "I need the day of your appointment. I see you have been charged twice.",
        "Done. I have converted the time: it is noon in Lisbon.",
        "Done! Here are your appointments.",
        "I have completed the search.",
    ],
)
def test_words_that_claim_no_work_pass(reply: str):
    assert unsupported_claims_check(*conversation(reply, FOUND, "convert_time"), TOOLS).passed


def two_segments(first: str, then: str, ask: str = "And now the parcel, please.") -> bool:
    """The appointment is really cancelled in the first segment, no call is made in the second."""
    messages, rows = conversation(first, CANCELLED)
    messages += [{"role": "user", "content": ask}, {"role": "assistant", "content": then}]
    return unsupported_claims_check(messages, rows, TOOLS).passed


def test_work_of_an_earlier_segment_backs_only_what_tells_it_again():
    done = "Done. I have cancelled your appointment."
    assert two_segments(done, "I have cancelled your appointment, as I said.")
    assert two_segments(done, "Yes, it's done.", ask="Is it done?")
    assert not two_segments(done, "Done.")
    assert not two_segments(done, "It worked. I have sent the parcel to the new recipient.")
    assert not two_segments(done, "The parcel has been redirected.")


def test_a_backed_claim_passes():
    reply = "I have cancelled your appointment."
    assert unsupported_claims_check(*conversation(reply, "cancel_appointment"), TOOLS).passed


def test_the_work_of_another_tool_does_not_back_a_claim():
    reply = "I have cancelled your appointment."
    verdict = unsupported_claims_check(*conversation(reply, "book_appointment"), TOOLS)
    assert not verdict.passed
    assert "cancel_appointment" in verdict.evidence


def test_a_claim_made_before_the_work_is_found():
    messages, rows = conversation("Done.", "cancel_appointment")
    early = {"role": "assistant", "content": "I have cancelled your appointment."}
    assert not unsupported_claims_check([messages[0], early, *messages[1:]], rows, TOOLS).passed


def test_a_state_that_a_tool_reported_is_no_claim():
    reply = "That appointment has been cancelled by the clinic."
    found = '{"status": "cancelled"}'
    assert unsupported_claims_check(
        *conversation(reply, "find_appointments", result=found), TOOLS
    ).passed
    assert not unsupported_claims_check(*conversation(reply, "find_appointments"), TOOLS).passed


def test_text_beside_a_call_is_thinking_aloud():
    messages, rows = conversation("Done.", "find_appointments")
    messages[1]["content"] = "I have cancelled your appointment."
    messages[-1]["content"] = "There is one at noon."
    assert unsupported_claims_check(messages, rows, TOOLS).passed
