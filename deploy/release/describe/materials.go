package main

import (
	"debug/buildinfo"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// product is what a bill of materials is of: a binary, or the packages of a package-lock.json.
type product struct {
	name, target string
	// sum is what the checksums of its modules are called.
	sum     string
	modules []module
}

// module is a module that is part of a product. Sum is its checksum in the form of go.sum, which is
// not a file's, or of a package-lock.json.
type module struct{ path, version, purl, sum string }

// readProduct reads a binary, or a package-lock.json.
func readProduct(file string) (product, error) {
	if filepath.Base(file) == "package-lock.json" {
		return npmProduct(file)
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return product{}, err
	}
	version := info.GoVersion[len("go"):]
	p := product{info.Main.Path, target(info), "go:sum", []module{
		{"std", version, "pkg:golang/std@" + version, ""},
	}}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		p.modules = append(
			p.modules,
			module{dep.Path, dep.Version, "pkg:golang/" + dep.Path + "@" + dep.Version, dep.Sum},
		)
	}
	return p, nil
}

// npmProduct returns the modules that npm installs with the packages of a package-lock.json.
func npmProduct(file string) (product, error) {
	var lock struct {
		Name     string
		Packages map[string]struct {
			Version, Integrity string
			Dev                bool
		}
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &lock)
	}
	if err != nil {
		return product{}, err
	}
	p := product{lock.Name, "npm", "npm:integrity", nil}
	for _, path := range slices.Sorted(maps.Keys(lock.Packages)) {
		folders := strings.Split(path, "node_modules/")
		name := folders[len(folders)-1]
		if len(folders) == 1 || lock.Packages[path].Dev || strings.HasPrefix(name, "@hubcloud/") {
			continue
		}
		version, sum := lock.Packages[path].Version, lock.Packages[path].Integrity
		purl := "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + version
		if m := (module{name, version, purl, sum}); !slices.Contains(p.modules, m) {
			p.modules = append(p.modules, m)
		}
	}
	return p, nil
}

// bill is a CycloneDX document.
type bill struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// cycloneDX returns the bill of materials of a version of a product, made at a time.
func cycloneDX(p product, version, at string) bill {
	name := p.name
	b := bill{Format: "CycloneDX", SpecVersion: "1.6", Version: 1}
	b.Metadata = metadata{at, component{
		Type: "application", Ref: name + "@" + version, Name: name, Version: version,
	}}
	for _, m := range p.modules {
		c := component{
			Type: "library", Ref: m.path + "@" + m.version, Name: m.path, Version: m.version,
			PURL: m.purl,
		}
		if m.sum != "" {
			c.Properties = []property{{p.sum, m.sum}}
		}
		b.Components = append(b.Components, c)
	}
	return b
}

// spdxDocument is an SPDX document.
type spdxDocument struct {
	Version       string         `json:"spdxVersion"`
	DataLicense   string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Packages      []spdxPackage  `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	ID        string     `json:"SPDXID"`
	Name      string     `json:"name"`
	Version   string     `json:"versionInfo"`
	Location  string     `json:"downloadLocation"`
	Analyzed  bool       `json:"filesAnalyzed"`
	Concluded string     `json:"licenseConcluded"`
	Declared  string     `json:"licenseDeclared"`
	Copyright string     `json:"copyrightText"`
	Refs      []external `json:"externalRefs,omitempty"`
}

type external struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

const unknown = "NOASSERTION" // the release has the licences in files of their own

// spdx returns the bill of materials of a version of a product, made at a time.
func spdx(p product, version, at string) spdxDocument {
	name := p.name
	d := spdxDocument{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT",
		Name:      name + "-" + version,
		Namespace: "https://spdx.org/spdxdocs/" + name + "-" + version + "-" + p.target,
		Creation:  creation{at, []string{"Tool: " + name + "-release"}},
		Packages: []spdxPackage{{
			ID: "SPDXRef-" + name, Name: name, Version: version, Location: unknown,
			Concluded: "Apache-2.0", Declared: "Apache-2.0", Copyright: unknown,
		}},
		Relationships: []relationship{{"SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-" + name}},
	}
	for _, m := range p.modules {
		id := "SPDXRef-" + identifier(m.path+"-"+m.version)
		d.Packages = append(d.Packages, spdxPackage{
			ID: id, Name: m.path, Version: m.version, Location: unknown,
			Concluded: unknown, Declared: unknown, Copyright: unknown,
			Refs: []external{{"PACKAGE-MANAGER", "purl", m.purl}},
		})
		d.Relationships = append(
			d.Relationships, relationship{"SPDXRef-" + name, "DEPENDS_ON", id},
		)
	}
	return d
}

// target returns the platform of a binary, such as linux-amd64.
func target(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	return settings["GOOS"] + "-" + settings["GOARCH"]
}

// identifier returns text with "-" in place of what an SPDX identifier cannot have.
func identifier(text string) string {
	id := []byte(text)
	for i, c := range id {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '-':
		default:
			id[i] = '-'
		}
	}
	return string(id)
}
