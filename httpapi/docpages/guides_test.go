package docpages

import (
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"go.yaml.in/yaml/v3"
)

// OpenAPI 3.2 describes the messages of both event streams with itemSchema.
func TestOpenAPI32(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
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
	if err := yaml.Unmarshal([]byte(OpenAPI32(string(text))), &document); err != nil {
		t.Fatal(err)
	}
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
	guides := Guides(os.DirFS("../docs"))
	request := httptest.NewRequest("GET", "/llms.txt", nil)
	request.Header.Set("Accept-Encoding", "gzip;q=0.5, zstd")
	answer := httptest.NewRecorder()
	if !guides.Serve(answer, request, "llms.txt") {
		t.Fatal("no llms.txt")
	}
	decoder, err := zstd.NewReader(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
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
	guide := httptest.NewRecorder()
	plain := httptest.NewRequest("GET", "/docs/event-streams.md", nil)
	if !guides.Serve(guide, plain, "event-streams.md") || strings.Contains(guide.Body.String(), "](../") ||
		!strings.HasPrefix(guide.Body.String(), "# ") {
		t.Errorf("got %.300s, want a guide without links to files that are not served", guide.Body)
	}
}
