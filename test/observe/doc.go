// Package observe runs the built binary through a story, and looks at what it tells of itself
// meanwhile: metrics, log lines, traces at a real OTLP receiver, readiness and profiles.
package observe
