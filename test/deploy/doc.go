// Package deploy holds what operators are given (deploy/) to what there is: alerts, dashboard and
// runbook name metrics, sections and files that exist, and commands and settings in container and
// manifest files are the binary's.
package deploy
