package main

import (
	"fmt"
	"strings"
)

// statement is an in-toto statement with a predicate of SLSA.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     predicate `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

type predicate struct {
	Build buildDefinition `json:"buildDefinition"`
	Run   runDetails      `json:"runDetails"`
}

type buildDefinition struct {
	Type         string            `json:"buildType"`
	Parameters   map[string]string `json:"externalParameters"`
	Dependencies []dependency      `json:"resolvedDependencies"`
}

type dependency struct {
	URI    string            `json:"uri"`
	Digest map[string]string `json:"digest,omitempty"`
}

type runDetails struct {
	Builder  builder           `json:"builder"`
	Metadata map[string]string `json:"metadata"`
}

type builder struct {
	ID string `json:"id"`
}

// provenance returns the statement of the files in sums, the output of sha256sum: built by
// release.sh from a commit, with a Go toolchain. Builds are reproducible, so their time is the
// commit's.
func provenance(sums, version, at, commit, toolchain string) (statement, error) {
	s := statement{
		Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1",
		Predicate: predicate{
			Build: buildDefinition{
				Type:       "urn:hubcloud:release.sh:v1",
				Parameters: map[string]string{"version": version},
				Dependencies: []dependency{
					{URI: "git:hubcloud", Digest: map[string]string{"gitCommit": commit}},
					{URI: "pkg:generic/go@" + strings.TrimPrefix(toolchain, "go")},
				},
			},
			Run: runDetails{
				Builder:  builder{"urn:hubcloud:make-release"},
				Metadata: map[string]string{"finishedOn": at},
			},
		},
	}
	for line := range strings.Lines(sums) {
		digest, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok || len(digest) != 64 {
			return s, fmt.Errorf("not a line of sha256sum: %q", line)
		}
		s.Subject = append(s.Subject, subject{name, map[string]string{"sha256": digest}})
	}
	return s, nil
}
