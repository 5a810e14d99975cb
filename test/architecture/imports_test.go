package architecture

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hubcloud/streams/streamstest"
)

// module is the prefix of the packages' import paths.
const module = "hubcloud/"

// goPackage is a package as `go list -json` describes it.
type goPackage struct {
	ImportPath, Dir  string
	Imports, GoFiles []string
}

// name returns the import path without the module.
func (p goPackage) name() string { return strings.TrimPrefix(p.ImportPath, module) }

// TestRules checks the packages of the service against the tables. Tests and their helper packages
// (…test) are exempt.
func TestRules(t *testing.T) {
	t.Parallel()
	packages := productionPackages(t)
	for _, violation := range violations(t, packages) {
		t.Error(violation)
	}
}

// TestViolationsAreFound checks packages that break one rule each.
func TestViolationsAreFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := []byte("package p\n\n// Comments may name $JS.API.\nvar subject = \"$JS.API.INFO\"\n")
	if err := os.WriteFile(filepath.Join(dir, "p.go"), source, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, p := range map[string]goPackage{
		"domain imports streams": {
			ImportPath: "hubcloud/domain", Imports: []string{"fmt", "hubcloud/streams"},
		},
		"domain imports golang.org/x/sync/errgroup": {
			ImportPath: "hubcloud/domain", Imports: []string{"golang.org/x/sync/errgroup"},
		},
		"httpapi imports github.com/jackc/pgx/v5/pgconn": {
			ImportPath: "hubcloud/httpapi", Imports: []string{"github.com/jackc/pgx/v5/pgconn"},
		},
		`streams/outbox/p.go:4 has "$JS."`: {
			ImportPath: "hubcloud/streams/outbox", Dir: dir, GoFiles: []string{"p.go"},
		},
	} {
		got := violations(t, []goPackage{p})
		if len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("violations of %+v: got %q, want one that begins with %q", p, got, want)
		}
	}
}

// violations returns a line for every rule that one of the packages breaks.
func violations(t *testing.T, packages []goPackage) []string {
	t.Helper()
	var found []string
	for _, p := range packages {
		for _, path := range p.Imports {
			imported, inModule := strings.CutPrefix(path, module)
			isLibrary := !inModule && strings.Contains(strings.SplitN(path, "/", 2)[0], ".")
			if r, ok := importRuleFor(p.name()); ok {
				if inModule && !matchesAny(r.allowed, imported) ||
					isLibrary && r.libraries != nil && !slices.Contains(r.libraries, path) {
					found = append(found, fmt.Sprintf(
						"%s imports %s: %s may import %q and the libraries %q: %s",
						p.name(), imported, r.packages, r.allowed, r.libraries, r.reason,
					))
				}
			}
			for _, r := range importerRules {
				if matches(r.imported, imported) && !matchesAny(r.by, p.name()) {
					found = append(found, fmt.Sprintf(
						"%s imports %s: only %q may import %s: %s",
						p.name(), imported, r.by, r.imported, r.reason,
					))
				}
			}
		}
		for _, u := range textUses(t, p) {
			if !slices.Contains(u.rule.in, p.name()) {
				found = append(found, fmt.Sprintf(
					"%s has %q: only %q may: %s", u.where, u.rule.text, u.rule.in, u.rule.reason,
				))
			}
		}
	}
	return found
}

// textUse is a string literal or a call that a rule is about.
type textUse struct {
	where string
	rule  textRule
}

// textUses returns what a package has of textRules in string literals, and of callRules in calls.
func textUses(t *testing.T, p goPackage) (found []textUse) {
	t.Helper()
	for _, name := range p.GoFiles {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, 0)
		streamstest.Must(t, err)
		add := func(n ast.Node, rules []textRule, has func(text string) bool) {
			for _, r := range rules {
				if has(r.text) {
					where := fmt.Sprintf(
						"%s/%s:%d", p.name(), name, files.Position(n.Pos()).Line,
					)
					found = append(found, textUse{where, r})
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				add(n, callRules, func(text string) bool { return text == n.Sel.Name })
			case *ast.BasicLit:
				if n.Kind == token.STRING {
					literal, err := strconv.Unquote(n.Value)
					streamstest.Must(t, err)
					add(n, textRules, func(text string) bool {
						return strings.Contains(literal, text)
					})
				}
			}
			return true
		})
	}
	return found
}

// importRuleFor returns the most specific rule that matches a package: the rule of the package
// itself, or of the folder that is nearest above it.
func importRuleFor(name string) (best importRule, found bool) {
	for _, r := range importRules {
		if r.packages == name {
			return r, true
		}
		if matches(r.packages, name) && len(r.packages) > len(best.packages) {
			best, found = r, true
		}
	}
	return best, found
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}

// matches reports whether a package's name matches a pattern of the tables.
func matches(pattern, name string) bool {
	folder, below := strings.CutSuffix(pattern, "/...")
	return name == folder || below && strings.HasPrefix(name, folder+"/")
}

// productionPackages returns the packages of the module that are not helpers of tests.
func productionPackages(t *testing.T) []goPackage {
	t.Helper()
	_ = os.Getenv("HUBCLOUD_TEST_BUILD") // ends cached results: go test sees only files of the tests' module
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,Imports,GoFiles", module+"...").
		Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []goPackage
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("output of go list: %v", err)
		}
		if !strings.HasSuffix(p.ImportPath, "test") && !matches("test/...", p.name()) {
			packages = append(packages, p)
		}
	}
}
