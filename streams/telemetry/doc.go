// Package telemetry records what happens to one request as it passes through the service: spans of
// OpenTelemetry traces, and the request's id. Metrics makes the metrics of all other packages.
//
// # Promises
//
//   - When tracing is off (the zero Tracer), a span costs one comparison and no allocation. Callers
//     check Span.On before they build attributes.
//   - When tracing is on, a finished span goes into a bounded queue. No request waits for the
//     collector.
//   - Attributes have the names of the semantic conventions, or begin with `hubcloud.` where there
//     is no such name. No attribute holds a secret: the portal's paths contain the tokens of links,
//     so spans carry routes, not paths.
//
// A trace starts with an HTTP request (continuing the trace of its `traceparent` header), with a
// batch of a hub's events, with a batch of a projection, or with the delivery of a mail. A mail
// continues the trace that queued it. Live calls to hubs, the steps of a command and appends to
// logs are spans below the request's.
//
// The program exports spans to a collector: cmd/hubcloud/internal/server/otlp.go.
package telemetry
