package portal

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"path"
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
}

// loadAssets names each file after its content, so that a browser may keep it for good: `style.css` becomes `style.1f3a….css`.
func loadAssets() assets {
	a := assets{named: map[string]string{}, files: map[string]asset{}}
	entries, err := assetFiles.ReadDir("assets")
	for _, entry := range entries {
		var content []byte
		if content, err = assetFiles.ReadFile("assets/" + entry.Name()); err != nil {
			break
		}
		sum, extension := sha256.Sum256(content), path.Ext(entry.Name())
		name := strings.TrimSuffix(entry.Name(), extension) + "." + hex.EncodeToString(sum[:6]) + extension
		a.named[entry.Name()] = name
		a.files[name] = asset{mime.TypeByExtension(extension), content}
	}
	if err != nil {
		panic(fmt.Sprintf("portal: the files in the binary cannot be read: %v", err))
	}
	return a
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
	header.Set("Content-Length", strconv.Itoa(len(file.content)))
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodHead {
		_, _ = w.Write(file.content) // a visitor who left is the visitor's affair
	}
}
