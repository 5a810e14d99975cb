package docpages

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"go.yaml.in/yaml/v3"

	"hubcloud/streams/streamstest"
)

// OpenAPI 3.2 describes the messages of both event streams with itemSchema.
func TestOpenAPI32(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../openapi.yaml")
	streamstest.Must(t, err)
	type media struct {
		ItemSchema map[string]any `yaml:"itemSchema"`
		Schema     map[string]any
	}
	var document struct {
		OpenAPI string
		Paths   map[string]struct {
			Get struct {
				Responses map[string]struct{ Content map[string]media }
			}
		}
	}
	streamstest.Must(t, yaml.Unmarshal([]byte(OpenAPI32(string(text))), &document))
	for _, path := range []string{"/events/stream", "/hubs/{hub_id}/events/stream"} {
		got := document.Paths[path].Get.Responses["200"].Content["text/event-stream"]
		if got.ItemSchema["properties"] == nil || got.Schema != nil {
			t.Errorf("%s: got %+v, want itemSchema with properties and no schema", path, got)
		}
	}
	if document.OpenAPI != "3.2.0" {
		t.Errorf("version is %s, want 3.2.0", document.OpenAPI)
	}
}

// llms.txt lists guides that are there, and a client that accepts zstd gets it.
func TestGuides(t *testing.T) {
	t.Parallel()
	guides := pages["guides"]
	request := httptest.NewRequest("GET", "/llms.txt", nil)
	request.Header.Set("Accept-Encoding", "gzip;q=0.5, zstd")
	answer := httptest.NewRecorder()
	if !guides.Serve(answer, request, "llms.txt") {
		t.Fatal("no llms.txt")
	}
	decoder, err := zstd.NewReader(answer.Body)
	streamstest.Must(t, err)
	defer decoder.Close()
	var list strings.Builder
	if _, err := decoder.WriteTo(&list); err != nil {
		t.Fatal(err)
	}
	if coding := answer.Header().Get("Content-Encoding"); coding != "zstd" {
		t.Errorf("Content-Encoding is %q, want zstd", coding)
	}
	const want = "- [Follow a feed without losing anything](/docs/follow-a-feed.md): Each hub has"
	if !strings.Contains(list.String(), want) {
		t.Errorf("got %s, want %q in it", list.String(), want)
	}
	names, err := filepath.Glob("../docs/*.md")
	if err != nil || len(names) < 10 {
		t.Fatalf("got guides %v, %v", names, err)
	}
	for _, path := range names {
		name := filepath.Base(path)
		text := get(t, guides, name).Body.String()
		if strings.Contains(text, "](../client/") || !strings.HasPrefix(text, "# ") {
			t.Errorf("%s: got %.300s, want a guide without links to files that are not served", name, text)
		}
		address := strings.TrimSuffix(strings.TrimSuffix(name, ".md"), "README")
		page := get(t, guides, address).Body.String()
		title, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
		if !strings.Contains(page, "<title>"+title+" · ") ||
			!strings.Contains(page, `aria-current="page">`+title+"</a>") || strings.Contains(page, `.md#`) {
			t.Errorf("%s: got %.900s, want the page %q, current in the contents", address, page, title)
		}
	}
	page := get(t, guides, "first-call").Body.String()
	for _, want := range []string{
		`<a class="anchor" href="#list-the-hubs">List the hubs</a></h2>`,
		`<li><a href="#list-the-hubs">List the hubs</a></li>`, `<a href="../v1/reference">API reference</a>`,
		`<div class="code"><pre tabindex="0"><code class="language-sh">`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("first-call: got %s, want %s in it", page, want)
		}
	}
}
