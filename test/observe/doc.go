// Package observe runs the built binary through a story and checks how the service reports it:
// metrics, log lines, traces at a real OTLP receiver, readiness and profiles.
package observe
