// Command describe prints what a release is made of, as JSON in the formats that tools read, and
// writes manual pages:
//
//	describe cyclonedx BINARY VERSION TIME              a bill of materials, CycloneDX 1.6
//	describe spdx BINARY VERSION TIME                   the same, SPDX 2.3
//	describe provenance SHA256SUMS VERSION TIME COMMIT  how the files were built, in-toto with SLSA 1
//	describe man BINARY VERSION TIME FOLDER             a page for each command, from its help
//
// The modules are those that the binary itself records; with a package-lock.json in place of BINARY,
// those that npm installs. TIME is in RFC 3339.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
)

func main() {
	document, err := describe(os.Args[1:])
	if err == nil && document != nil {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(document)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "describe:", err)
		os.Exit(1)
	}
}

// describe returns the document that the arguments ask for; nil for manual pages.
func describe(args []string) (any, error) {
	switch {
	case len(args) == 5 && args[0] == "man":
		return nil, writeManPages(args[1], args[2], args[3], args[4])
	case len(args) == 5 && args[0] == "provenance":
		sums, err := os.ReadFile(args[1])
		if err != nil {
			return nil, err
		}
		return provenance(string(sums), args[2], args[3], args[4], runtime.Version())
	case len(args) == 4 && (args[0] == "cyclonedx" || args[0] == "spdx"):
		p, err := readProduct(args[1])
		if err != nil {
			return nil, err
		}
		if args[0] == "spdx" {
			return spdx(p, args[2], args[3]), nil
		}
		return cycloneDX(p, args[2], args[3]), nil
	}
	return nil, fmt.Errorf("unknown arguments %q; see the top of main.go", args)
}
