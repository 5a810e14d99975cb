package portal

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
)

//go:embed assets
var assetFiles embed.FS

// assets are the files that pages need.
type assets struct {
	named map[string]string // the name in the address, by the file's
	files map[string]asset  // by the name in the address
}

type asset struct {
	contentType string
	content     []byte
	// compressed is content with gzip. Pages are not compressed: they hold secrets beside what
	// their address says, of which the size would tell.
	compressed []byte
}

// importedModule finds what a script imports: a file beside it.
var importedModule = regexp.MustCompile(`from "\./([a-z]+\.js)"`)

// loadAssets names each file after its content, so that a browser may keep it for good: `style.css`
// becomes `style.1f3a….css`.
func loadAssets() assets {
	a := assets{named: map[string]string{}, files: map[string]asset{}}
	entries, err := assetFiles.ReadDir("assets")
	for _, entry := range entries {
		if err == nil {
			_, err = a.load(entry.Name())
		}
	}
	if err != nil {
		panic(fmt.Sprintf("portal: the files in the binary cannot be read: %v", err))
	}
	return a
}

// load takes a file and gives the name that it gets. A script imports others by theirs, so those
// come first; they import nobody in a circle.
func (a assets) load(file string) (string, error) {
	if name, ok := a.named[file]; ok {
		return name, nil
	}
	content, err := assetFiles.ReadFile("assets/" + file)
	if err != nil {
		return "", err
	}
	extension := path.Ext(file)
	if extension == ".js" {
		content = importedModule.ReplaceAllFunc(content, func(match []byte) []byte {
			name, failed := a.load(string(importedModule.FindSubmatch(match)[1]))
			if failed != nil {
				err = failed
			}
			return []byte(`from "./` + name + `"`)
		})
	}
	sum := sha256.Sum256(content)
	name := strings.TrimSuffix(file, extension) + "." + hex.EncodeToString(sum[:6]) + extension
	a.named[file] = name
	a.files[name] = asset{mime.TypeByExtension(extension), content, compress(content)}
	return name, err
}

// compress compresses.
func compress(content []byte) []byte {
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(content)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(fmt.Sprintf("portal: what is in memory cannot be packed: %v", err))
	}
	return compressed.Bytes()
}

// name gives the name under which a page asks for a file.
func (a assets) name(file string) (string, error) {
	name, ok := a.named[file]
	if !ok {
		return "", fmt.Errorf("there is no file %q", file)
	}
	return name, nil
}

// serve answers with a file.
func (a assets) serve(w http.ResponseWriter, r *http.Request, name string) {
	file, ok := a.files[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	header := w.Header()
	header.Set("Content-Type", file.contentType)
	header.Set("Vary", "Accept-Encoding")
	content := file.content
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		content = file.compressed
		header.Set("Content-Encoding", "gzip")
	}
	header.Set("Content-Length", strconv.Itoa(len(content)))
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodHead {
		_, _ = w.Write(content) // a visitor who left is the visitor's affair
	}
}

// acceptsGzip reads Accept-Encoding (RFC 9110, section 12.5.3) as far as it names gzip: with a
// weight of nought it is not wanted.
func acceptsGzip(accepted string) bool {
	for coding := range strings.SplitSeq(accepted, ",") {
		name, parameters, _ := strings.Cut(strings.TrimSpace(coding), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			weight := strings.TrimPrefix(
				strings.ToLower(strings.ReplaceAll(parameters, " ", "")), "q=",
			)
			return strings.Trim(weight, "0.") != "" || weight == ""
		}
	}
	return false
}
