package httpapi

import (
	"net/url"
	"strings"
	"testing"

	"hubcloud/domain"
)

// TestMisspeltParameters: a misspelt filter selected everything, such as ?siteid= all hubs.
func TestMisspeltParameters(t *testing.T) {
	t.Parallel()
	for _, rt := range (&api{}).routes() {
		for _, name := range rt.query {
			if err := checkNames(name+"=1&"+name, rt.query); err != nil {
				t.Errorf("%s %s: %s: got %v, want no error", rt.method, rt.pattern, name, err)
			}
			misspelt := []string{
				strings.ToUpper(name), name + "_", "-" + name, strings.ReplaceAll(name, "_", "-"),
				strings.ReplaceAll(name, "_", ""), name + "s", name[:len(name)-2] + "x" + name[len(name)-1:],
				name + "[]", url.QueryEscape(" " + name),
			}
			if len(name) >= 4 {
				misspelt = append(misspelt, name[:1]+name[2:], name[1:2]+name[:1]+name[2:])
			}
			if len(name) >= 5 {
				misspelt = append(misspelt, name[:1]+name[3:], name+"xy")
			}
			for _, wrong := range misspelt {
				if wrong == name {
					continue
				}
				err := checkNames("x=1&"+wrong+"=1", rt.query)
				if domain.CodeOf(err) != domain.CodeInvalidRequest ||
					!strings.HasSuffix(err.Error(), "the name is "+name) {
					t.Errorf(
						"%s %s: %s: got error %v, want one that names %s", rt.method, rt.pattern,
						wrong, err, name,
					)
				}
			}
		}
		for _, other := range []string{
			"_", "t", "x", "", "utm_source", "cache_buster", "page", "sort", "before_id", "%zz",
			"org", "ünrelated", strings.Repeat("limit", 1000),
		} {
			if err := checkNames(other+"=1", rt.query); err != nil {
				t.Errorf("%s %s: %.20s: got %v, want no error", rt.method, rt.pattern, other, err)
			}
		}
	}
}
