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
			`streams/outbox/p.go:4 has "$JS."`,
		},
		"a call": {
			goPackage{
				ImportPath: "hubcloud/streams/outbox", Dir: dir, GoFiles: []string{"w.go"},
			},
			`streams/outbox/w.go:3 has "OpenWriter"`,
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

// TestPatternsAreUsed fails if a pattern of the tables allows what no package does, as after a move.
func TestPatternsAreUsed(t *testing.T) {
	t.Parallel()
	packages := productionPackages(t)
	// imports reports whether a package that importer matches imports what the pattern matches.
	imports := func(importer func(name string) bool, pattern string) bool {
		return slices.ContainsFunc(packages, func(p goPackage) bool {
			return importer(p.name()) && slices.ContainsFunc(p.Imports, func(path string) bool {
				return matches(pattern, strings.TrimPrefix(path, module))
			})
		})
	}
	for _, r := range importRules {
		ruled := func(name string) bool {
			rule, ok := importRuleFor(name)
			return ok && rule.packages == r.packages
		}
		if !slices.ContainsFunc(packages, func(p goPackage) bool { return ruled(p.name()) }) {
			t.Errorf("the rule for %s is for no package", r.packages)
		}
		for _, pattern := range slices.Concat(r.allowed, r.libraries) {
			if !imports(ruled, pattern) {
				t.Errorf("no package with the rule for %s imports %s", r.packages, pattern)
			}
		}
	}
	for _, r := range importerRules {
		for _, pattern := range r.by {
			if !imports(func(name string) bool { return matches(pattern, name) }, r.imported) {
				t.Errorf("no package %s imports %s", pattern, r.imported)
			}
		}
	}
	users := map[string][]string{}
	for _, p := range packages {
		for _, u := range textUses(t, p) {
			users[u.rule.text] = append(users[u.rule.text], p.name())
		}
	}
	for _, r := range slices.Concat(textRules, callRules) {
		for _, name := range r.in {
			if !slices.Contains(users[r.text], name) {
				t.Errorf("package %s does not have %s", name, r.text)
			}
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
		if err != nil {
			t.Fatal(err)
		}
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
					if err != nil {
						t.Fatal(err)
					}
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
