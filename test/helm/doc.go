// Package helm renders the Helm chart as Helm does, and checks what comes out against the types of
// the Kubernetes API and of the Prometheus operator.
package helm
