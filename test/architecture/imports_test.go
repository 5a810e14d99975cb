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
	for name, source := range map[string]string{
		"p.go": "package p\n\n// Comments may name $JS.API.\nvar subject = \"$JS.API.INFO\"\n",
		"w.go": "package p\n\nvar open = journals.OpenWriter\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		pkg  goPackage
		want string // how the only violation begins
	}{
		"a folder above": {
			goPackage{ImportPath: "hubcloud/domain", Imports: []string{"fmt", "hubcloud/streams"}},
			"domain imports streams",
		},
		"a library": {
			goPackage{
				ImportPath: "hubcloud/domain", Imports: []string{"golang.org/x/sync/errgroup"},
			},
			"domain imports golang.org/x/sync/errgroup",
		},
		"a package of the longer pattern": {
			goPackage{
				ImportPath: "hubcloud/hubbridge/codec",
				Imports:    []string{"hubcloud/domain", "hubcloud/streams"},
			},
			"hubbridge/codec imports streams",
		},
		"a package below an allowed one": {
			goPackage{
				ImportPath: "hubcloud/streams", Imports: []string{"hubcloud/streams/jsapi/inner"},
			},
			"streams imports streams/jsapi/inner",
		},
		"a package with few importers": {
			goPackage{
				ImportPath: "hubcloud/cmd/hubcloud/internal/server",
				Imports:    []string{"hubcloud/cmd/hubcloud/internal/cli"},
			},
			"cmd/hubcloud/internal/server imports cmd/hubcloud/internal/cli",
		},
		"a library with few importers": {
			goPackage{
				ImportPath: "hubcloud/httpapi", Imports: []string{"github.com/jackc/pgx/v5/pgconn"},
			},
			"httpapi imports github.com/jackc/pgx/v5/pgconn",
		},
		"a text": {
			goPackage{
				ImportPath: "hubcloud/streams/outbox", Dir: dir, GoFiles: []string{"p.go"},
			},
			`streams/outbox/p.go:4 contains "$JS."`,
		},
		"a call": {
			goPackage{
				ImportPath: "hubcloud/streams/outbox", Dir: dir, GoFiles: []string{"w.go"},
			},
			"streams/outbox/w.go:3 uses OpenWriter",
		},
		"nothing": {
			goPackage{
				ImportPath: "hubcloud/streams/jsapi", Dir: dir, GoFiles: []string{"p.go"},
				Imports: []string{"fmt", "hubcloud/domain", "github.com/nats-io/nats.go/jetstream"},
			},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := violations(t, []goPackage{c.pkg})
			if c.want == "" && len(got) == 0 {
				return
			}
			if c.want == "" || len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
				t.Errorf(
					"violations of %+v: got %q, want one that begins with %q", c.pkg, got, c.want,
				)
			}
		})
	}
}

// TestPatternsMatch fails if a pattern of the tables matches no package, as after a move.
func TestPatternsMatch(t *testing.T) {
	t.Parallel()
	var patterns []string
	for _, r := range importRules {
		patterns = append(append(patterns, r.packages), r.allowed...)
	}
	for _, r := range importerRules {
		patterns = append(append(patterns, r.imported), r.by...)
	}
	for _, r := range textRules {
		patterns = append(patterns, r.in...)
	}
	packages := productionPackages(t)
	for _, pattern := range patterns {
		if !slices.ContainsFunc(packages, func(p goPackage) bool {
			return matches(pattern, p.name()) || slices.ContainsFunc(
				p.Imports, func(imported string) bool { return matches(pattern, imported) },
			)
		}) {
			t.Errorf("pattern %s matches no package", pattern)
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
		for _, file := range p.GoFiles {
			found = append(found, textViolations(t, p, file)...)
		}
	}
	return found
}

// textViolations returns a line for every string literal and every call of a file that breaks a
// rule.
func textViolations(t *testing.T, p goPackage, name string) []string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			for _, r := range callRules {
				if selector.Sel.Name == r.name && !slices.Contains(r.in, p.name()) {
					found = append(found, fmt.Sprintf(
						"%s/%s:%d uses %s: only %q may: %s", p.name(), name,
						files.Position(selector.Pos()).Line, r.name, r.in, r.reason,
					))
				}
			}
		}
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range textRules {
			if strings.Contains(text, r.text) && !slices.Contains(r.in, p.name()) {
				found = append(found, fmt.Sprintf(
					"%s/%s:%d contains %q: only %q may: %s",
					p.name(), name, files.Position(literal.Pos()).Line, r.text, r.in, r.reason,
				))
			}
		}
		return true
	})
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
