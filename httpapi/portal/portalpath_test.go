package portal

import (
	"net/url"
	"strings"
	"testing"

	"hubcloud/streams/streamstest"
)

// Signing in redirects only to pages of the portal, as any browser resolves the address.
func FuzzPortalPath(f *testing.F) {
	for _, seed := range []string{
		"/portal/01940000-0000-7000-8000-000000000001/keys", "/portal/x/hubs/hub-7k2m-q4xd-93ta",
		"//evil.example", "/portal//evil.example", `/portal/\evil.example`,
		"/portal/..//evil.example", "/portal/%2e%2e/x", "/portal/x?y",
		"https://evil.example/portal/x", "/portal/x:y", "/portal/\t/evil.example", "/portal/é",
	} {
		f.Add(seed)
	}
	from, err := url.Parse("https://hubs.example.org/behind/portal/sign-in/token")
	streamstest.Must(f, err)
	f.Fuzz(func(t *testing.T, next string) {
		page := portalPath(next)
		if page == "" {
			return
		}
		to, err := from.Parse("../" + strings.TrimPrefix(page, "/portal/")) // as redirect writes it
		if err != nil || portalPath(page) != page || to.Host != from.Host || to.Scheme != from.Scheme ||
			to.RequestURI() != "/behind"+page ||
			to.Fragment != "" {
			t.Errorf(
				"%q: got an address that leads to %v, %v, want a page of the portal", next, to, err,
			)
		}
	})
}
