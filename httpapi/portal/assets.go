package portal

import (
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

	"hubcloud/httpapi/docpages"
)

//go:embed assets
var assetFiles embed.FS

// assets are the static files of pages.
type assets struct {
	names map[string]string // the public name of each file
	files map[string]asset  // by public name
}

type asset struct {
	contentType string
	content     []byte
	// compressed is content with gzip.
	compressed []byte
}

// importedModule matches an import of another asset.
var importedModule = regexp.MustCompile(`from "\./([a-z]+\.js)"`)

// loadAssets loads the files. The public name of a file has a hash of its content, so that browsers
// can cache it forever: `style.css` becomes `style.1f3a….css`.
func loadAssets() assets {
	a := assets{names: map[string]string{}, files: map[string]asset{}}
	entries, err := assetFiles.ReadDir("assets")
	for _, entry := range entries {
		if err == nil {
			_, err = a.load(entry.Name())
		}
	}
	if err != nil {
		panic(fmt.Sprintf("portal: read embedded assets: %v", err))
	}
	return a
}

// load loads a file and returns its public name. It loads the modules that a script imports first,
// and writes their public names into the script. Imports must not be circular.
func (a assets) load(file string) (string, error) {
	if name, ok := a.names[file]; ok {
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
	a.names[file] = name
	a.files[name] = asset{mime.TypeByExtension(extension), content, compress(content, 0)}
	return name, err
}

// name returns the public name of a file.
func (a assets) name(file string) (string, error) {
	name, ok := a.names[file]
	if !ok {
		return "", fmt.Errorf("no asset %q", file)
	}
	return name, nil
}

// Asset returns an embedded file, such as "tokens.css", for pages that share the portal's design.
func Asset(file string) []byte {
	content, err := assetFiles.ReadFile("assets/" + file)
	if err != nil {
		panic(fmt.Sprintf("portal: read embedded assets: %v", err))
	}
	return content
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
	if docpages.Accepts(r.Header["Accept-Encoding"], "gzip") {
		content = file.compressed
		header.Set("Content-Encoding", "gzip")
	}
	header.Set("Content-Length", strconv.Itoa(len(content)))
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodHead {
		_, _ = w.Write(content) // the client has gone
	}
}
