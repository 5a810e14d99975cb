// Command sbom prints a bill of materials (CycloneDX 1.6, JSON) of a Go binary: the modules that
// are linked into it, as the binary itself records them.
//
//	sbom BINARY VERSION TIME
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
)

// document is a CycloneDX document.
type document struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl,omitempty"`
	// Properties has the module's checksum in the form of go.sum, which is not that of a file.
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY VERSION TIME")
		os.Exit(2)
	}
	info, err := buildinfo.ReadFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(describe(info, os.Args[2], os.Args[3])); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// describe returns the document of a binary of a version, made at a time (RFC 3339).
func describe(info *debug.BuildInfo, version, at string) document {
	name := info.Main.Path
	d := document{Format: "CycloneDX", SpecVersion: "1.6", Version: 1}
	d.Metadata = metadata{at, component{
		Type: "application", Ref: name + "@" + version, Name: name, Version: version,
	}}
	d.Components = append(d.Components, component{
		Type: "library", Ref: "std@" + info.GoVersion, Name: "std", Version: info.GoVersion,
		PURL: "pkg:golang/std@" + info.GoVersion[len("go"):],
	})
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		ref := module.Path + "@" + module.Version
		d.Components = append(d.Components, component{
			Type: "library", Ref: ref, Name: module.Path, Version: module.Version,
			PURL:       "pkg:golang/" + ref,
			Properties: []property{{"go:sum", module.Sum}},
		})
	}
	return d
}
