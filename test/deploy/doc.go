// Package deploy compares the files for operators (deploy/) with the binary: alerts, dashboard and
// runbook use existing metrics, sections and files, and container and manifest files use existing
// commands and settings.
package deploy
