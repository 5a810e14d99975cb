// Package telemetry is what the service's parts tell about one request as it passes through them:
// spans of OpenTelemetry traces, and the request's id.
//
// # Promises
//
//   - Off, which is the zero Tracer, a span costs a comparison and no memory. Whoever sets
//     attributes asks Span.On first.
//   - On, a span is put into a bounded queue when it ends. Nobody ever waits for a collector.
//   - Attributes have the names of the semantic conventions where those have one, and begin with
//     `hubcloud.` otherwise. No attribute holds a secret: paths of the portal hold the tokens of
//     links, so spans have routes and no paths.
//
// A trace begins with a request, where it continues that of its `traceparent`, with a batch of a
// hub's events, with a batch of a projection or with the delivery of a mail; a mail goes on with
// the trace that put it into its queue. Below a request are the live calls to hubs, the steps of
// commands, and what is appended to logs.
//
// cmd/hubcloud/otlp sends spans to a collector; only the program itself imports it.
package telemetry
