package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Check reads a whole backup and compares it with its sums. It returns ErrUnfinished for a folder
// that holds no finished backup, and ErrDamaged, with the file's name, for one that is not what was
// written.
func Check(ctx context.Context, dir string, tell func(Progress)) (Manifest, error) {
	text, err := read(dir, manifestName)
	if err != nil {
		return Manifest{}, err
	}
	sums, err := read(dir, sumsName)
	if err != nil {
		return Manifest{}, err
	}
	if !strings.HasSuffix(string(sums), fmt.Sprintf("%s  %s\n", sumOf(text), manifestName)) {
		return Manifest{}, fmt.Errorf(
			"%w: %s and %s do not fit together, one of them is not what was written", ErrDamaged,
			manifestName, sumsName,
		)
	}
	m, err := parseManifest(text)
	if err != nil {
		return m, err
	}
	if m.sums(sumOf(text)) != string(sums) {
		return m, fmt.Errorf("%w: %s is not what was written", ErrDamaged, sumsName)
	}
	meter := newMeter(tell, m.Bytes())
	var damage []error
	for _, f := range m.Files {
		if ctx.Err() != nil {
			return m, ctx.Err()
		}
		meter.step("check " + f.Name)
		bytes, sum, err := sumFile(filepath.Join(dir, filepath.FromSlash(f.Name)), meter.add)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			damage = append(damage, fmt.Errorf("%s is missing", f.Name))
		case err != nil:
			return m, err
		case bytes != f.Bytes:
			damage = append(
				damage,
				fmt.Errorf("%s has %d bytes, and was written with %d", f.Name, bytes, f.Bytes),
			)
		case sum != f.SHA256:
			damage = append(
				damage, fmt.Errorf("%s is not what was written: its SHA-256 is %s", f.Name, sum),
			)
		}
	}
	if len(damage) > 0 {
		return m, fmt.Errorf("%w: %w", ErrDamaged, errors.Join(damage...))
	}
	meter.end()
	return m, nil
}

// read reads one of the two files that make a folder a backup.
func read(dir, name string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	why := "it holds no backup"
	if _, err := os.Stat(filepath.Join(dir, unfinishedName)); err == nil {
		why = "it was not finished, or is being written"
	}
	return nil, fmt.Errorf("%w in %s: %s is missing; %s", ErrUnfinished, dir, name, why)
}
