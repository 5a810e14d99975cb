// Command style reports what the house style forbids and a program can find: lines over 120
// columns, doc comments that do not use Go's forms, names that have a standard term, and sleeps
// without a reason.
//
//	go run ./test/style FILE.go ...
//
// It prints one finding a line as FILE:LINE: TEXT and exits with 1 when there is one.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

const (
	maxColumns = 120
	tabWidth   = 4
)

// standardTerms has, for words that identifiers must not contain, what to write instead.
var standardTerms = map[string]string{
	"aftermath":   "cleanup",
	"crew":        "group",
	"forgo":       "ackUnowned",
	"forsake":     "dropUnconfirmed",
	"fulfilled":   "Matches",
	"heeded":      "skipped",
	"horizon":     "unaccounted range",
	"incarnation": "epoch",
	"lineage":     "epoch",
	"patient":     "target",
	"recall":      "restore",
	"refusal":     "API error, rejection",
	"refuse":      "reject",
	"refused":     "rejected",
	"refuses":     "rejects",
	"sift":        "readablePrefix",
	"unwell":      "unhealthy",
	"uplink":      "sendwindow",
}

// standardNames has the same for whole identifiers, whose words are fine in others (inFlight).
var standardNames = map[string]string{
	"agree":     "reconcile",
	"examine":   "check",
	"exchange":  "request",
	"fed":       "received",
	"flight":    "call",
	"greet":     "ackHello",
	"ground":    "infrastructure",
	"guests":    "demo",
	"introduce": "saveHello",
	"landing":   "result",
	"lanes":     "workers",
	"ledger":    "checkpoint",
	"slack":     "unaccounted range",
	"takeOff":   "start",
	"tell":      "marshal",
	"told":      "snapshot",
	"turns":     "keyed mutex",
	"warm":      "cached",
}

// docForm matches a doc comment whose verb has a usual form in Go.
var docForm = regexp.MustCompile(`^\w+ (gives|says|tells|hears)\b`)

// mayContainSleeps has, for files whose sleeps need no comment, why not. Files that import
// testing/synctest need no entry: they sleep on the clock of a bubble.
var mayContainSleeps = map[string]string{
	"httpapi/contract_test.go": "all its sleeps are inside inBubble, which calls synctest.Test",
}

func main() {
	found := false
	for _, path := range os.Args[1:] {
		findings, err := check(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		for _, f := range findings {
			found = true
			fmt.Printf("%s:%v\n", path, f)
		}
	}
	if found {
		os.Exit(1)
	}
}

// finding is something in a file that the house style forbids.
type finding struct {
	line int
	text string
}

// String returns the finding as LINE: TEXT.
func (f finding) String() string { return fmt.Sprintf("%d: %s", f.line, f.text) }

// check returns the findings in the Go file at path, by line. Generated files have none.
func check(path string) ([]finding, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	findings := longLines(files, file, string(source))
	for _, comment := range docs(file) {
		if m := docForm.FindStringSubmatch(comment.Text()); m != nil {
			findings = append(findings, finding{
				files.Position(comment.Pos()).Line,
				fmt.Sprintf(
					"doc comment says %q: write \"returns\", \"reports whether\" or \"is\"", m[1],
				),
			})
		}
	}
	findings = append(findings, bareSleeps(files, file, path, string(source))...)
	for _, name := range declared(file) {
		if term, ok := standardTerm(name.Name); ok {
			findings = append(findings, finding{
				files.Position(name.Pos()).Line, fmt.Sprintf("name %s: write %s", name.Name, term),
			})
		}
	}
	slices.SortStableFunc(findings, func(a, b finding) int { return a.line - b.line })
	return findings, nil
}

// longLines returns the lines over maxColumns. Raw strings, struct tags among them, are exempt:
// they cannot be wrapped.
func longLines(files *token.FileSet, file *ast.File, source string) []finding {
	raw := map[int]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(lit.Value, "`") {
			for line := files.Position(lit.Pos()).Line; line <= files.Position(lit.End()).Line; line++ {
				raw[line] = true
			}
		}
		return true
	})
	var findings []finding
	for i, line := range strings.Split(source, "\n") {
		columns := len([]rune(line)) + strings.Count(line, "\t")*(tabWidth-1)
		if columns > maxColumns && !raw[i+1] {
			findings = append(findings, finding{
				i + 1, fmt.Sprintf("%d columns: at most %d are allowed", columns, maxColumns),
			})
		}
	}
	return findings
}

// bareSleeps returns the calls of time.Sleep without a comment directly above or at the end of the
// line. path is the file's, relative to the repository.
func bareSleeps(files *token.FileSet, file *ast.File, path, source string) []finding {
	if _, ok := mayContainSleeps[filepath.ToSlash(path)]; ok {
		return nil
	}
	if slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool {
		return i.Path.Value == `"testing/synctest"`
	}) {
		return nil
	}
	commented := map[int]bool{} // lines on which a comment ends
	for _, group := range file.Comments {
		commented[files.Position(group.End()).Line] = true
	}
	lines := strings.Split(source, "\n")
	var findings []finding
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !isSleep(call.Fun) {
			return true
		}
		line := files.Position(call.Pos()).Line
		above := strings.TrimSpace(lines[max(0, line-2)])
		if !commented[files.Position(call.End()).Line] &&
			!(commented[line-1] && strings.HasPrefix(above, "//")) {
			findings = append(findings, finding{
				line, "time.Sleep: write the reason above the call or at the end of its line",
			})
		}
		return true
	})
	return findings
}

// isSleep reports whether an expression is time.Sleep.
func isSleep(fun ast.Expr) bool {
	selector, ok := fun.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != "Sleep" {
		return false
	}
	pkg, ok := selector.X.(*ast.Ident)
	return ok && pkg.Name == "time"
}

// docs returns the doc comments of a file's declarations, fields and methods.
func docs(file *ast.File) (comments []*ast.CommentGroup) {
	ast.Inspect(file, func(n ast.Node) bool {
		var doc *ast.CommentGroup
		switch n := n.(type) {
		case *ast.FuncDecl:
			doc = n.Doc
		case *ast.GenDecl:
			doc = n.Doc
		case *ast.TypeSpec:
			doc = n.Doc
		case *ast.ValueSpec:
			doc = n.Doc
		case *ast.Field:
			doc = n.Doc
		}
		if doc != nil {
			comments = append(comments, doc)
		}
		return true
	})
	return comments
}

// declared returns the identifiers that a file declares: functions, types, values, fields,
// parameters and variables.
func declared(file *ast.File) (names []*ast.Ident) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			names = append(names, n.Name)
		case *ast.TypeSpec:
			names = append(names, n.Name)
		case *ast.ValueSpec:
			names = append(names, n.Names...)
		case *ast.Field:
			names = append(names, n.Names...)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, left := range n.Lhs {
					if name, ok := left.(*ast.Ident); ok {
						names = append(names, name)
					}
				}
			}
		}
		return true
	})
	return names
}

// contractTerm is the API's name of an error type: command_refused.
const contractTerm = "CommandRefused"

// standardTerm returns what to write instead of an identifier, if it is not to be used.
func standardTerm(name string) (string, bool) {
	if strings.HasSuffix(name, contractTerm) {
		return "", false
	}
	if term, ok := standardNames[name]; ok {
		return term, true
	}
	for _, word := range words(name) {
		if term, ok := standardTerms[word]; ok {
			return term, true
		}
	}
	return "", false
}

// words splits a camel-case identifier into its words, in lower case.
func words(name string) []string {
	var split []string
	begin := 0
	for i, r := range name {
		if i > begin && (unicode.IsUpper(r) || r == '_') {
			split = append(split, strings.ToLower(strings.Trim(name[begin:i], "_")))
			begin = i
		}
	}
	return append(split, strings.ToLower(strings.Trim(name[begin:], "_")))
}
