"""The status socket's wire: every resource of version 1 as a typed model, by subject.

Within a version fields are only added. Bandwidths are bits per second and end in `_bps`, times are seconds and end in
`_s`; `tx` and `egress` are away from the node or pod.

Dataclasses, not pydantic models: thirty of those cost 7 MiB of resident memory, these 0.3. pydantic reads them where it
is needed: the OpenAPI document is generated from them, and what a client sends is validated by them.
"""

from netqos.observe.wire.base import (
    API,
    SCOPE,
    Asked,
    ErrorWire,
    FindingWire,
    LevelName,
    ProblemWire,
    T,
    Way,
    Word,
    encode,
)
from netqos.observe.wire.changes import (
    BackendPlanWire,
    DeletedWire,
    OperationWire,
    OverrideBody,
    OverridesWire,
    OverrideWire,
    PlanWire,
    ReconcileWire,
)
from netqos.observe.wire.loop import (
    CeilingWire,
    ContentionWire,
    DecisionWire,
    HistoryWire,
    LevelNowWire,
    LoopWire,
    RoomWire,
    WhyWire,
)
from netqos.observe.wire.node import (
    BackendWire,
    DirectionWire,
    FailureWire,
    LevelWire,
    NodeWire,
    RejectedWire,
    ResultWire,
    SourceWire,
    StatusWire,
    UplinkWire,
)
from netqos.observe.wire.paths import PathStepWire, UplinkPathWire
from netqos.observe.wire.pods import (
    ChoiceWire,
    CounterWire,
    EnforcementWire,
    ExplainWire,
    LimitWire,
    MovedWire,
    PathWire,
    PodsWire,
    PodWire,
    RuleWire,
)

__all__ = [
    "API",
    "SCOPE",
    "Asked",
    "BackendPlanWire",
    "BackendWire",
    "CeilingWire",
    "ChoiceWire",
    "ContentionWire",
    "CounterWire",
    "DecisionWire",
    "DeletedWire",
    "DirectionWire",
    "EnforcementWire",
    "ErrorWire",
    "ExplainWire",
    "FailureWire",
    "FindingWire",
    "HistoryWire",
    "LevelName",
    "LevelNowWire",
    "LevelWire",
    "LimitWire",
    "LoopWire",
    "MovedWire",
    "NodeWire",
    "OperationWire",
    "OverrideBody",
    "OverrideWire",
    "OverridesWire",
    "PathStepWire",
    "PathWire",
    "PlanWire",
    "PodWire",
    "PodsWire",
    "ProblemWire",
    "ReconcileWire",
    "RejectedWire",
    "ResultWire",
    "RoomWire",
    "RuleWire",
    "SourceWire",
    "StatusWire",
    "T",
    "UplinkPathWire",
    "UplinkWire",
    "Way",
    "WhyWire",
    "Word",
    "encode",
]
