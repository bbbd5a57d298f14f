"""The metrics as Prometheus reads them: samples in, text out. The only file that imports prometheus_client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from netqos.observe.measure import Sample
from netqos.observe.metrics import METRICS, Metric
from netqos.observe.recorder import Distribution

Family = GaugeMetricFamily | CounterMetricFamily | HistogramMetricFamily


class Exposition:
    """Writes samples down, together with what the kernel tells of this process (`process_*`)."""

    def __init__(self) -> None:
        """Start with a registry of its own: the library's global one is everybody's."""
        self._process = ProcessCollector(registry=None)

    def render(self, samples: Iterable[Sample], accept: str) -> tuple[bytes, str]:
        """The text in the format that the `Accept` header asks for, and its content type."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Snapshot(list(samples)))
        registry.register(self._process)
        encoder, content_type = choose_encoder(accept)
        return encoder(registry), content_type


class _Snapshot(Collector):
    """A custom collector over samples that are already there."""

    def __init__(self, samples: list[Sample]) -> None:
        self._samples = samples

    def collect(self) -> Iterator[Family]:
        by_name: dict[str, list[Sample]] = {}
        for sample in self._samples:
            by_name.setdefault(sample.name, []).append(sample)
        for metric in METRICS:
            yield _family(metric, by_name.get(metric.name, []))


def _family(metric: Metric, samples: list[Sample]) -> Family:
    if metric.kind == "histogram":
        histogram = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        for sample in samples:
            assert isinstance(sample.value, Distribution)
            histogram.add_metric(sample.labels, _buckets(sample.value), sample.value.sum)
        return histogram
    kind = GaugeMetricFamily if metric.kind == "gauge" else CounterMetricFamily
    family = kind(metric.name, metric.help, labels=metric.labels)
    for sample in samples:
        assert not isinstance(sample.value, Distribution)
        family.add_metric(sample.labels, float(sample.value))
    return family


def _buckets(distribution: Distribution) -> list[tuple[str, float]]:
    ends = [*(repr(bound) for bound in distribution.bounds), "+Inf"]
    return [(end, float(count)) for end, count in zip(ends, distribution.counts, strict=True)]
