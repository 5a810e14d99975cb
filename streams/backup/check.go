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

// Check reads every file of a backup, compares its checksum, and returns the backup's manifest. The
// error is ErrUnfinished for a folder without a finished backup, and ErrDamaged, with the names of
// the files, if files are changed, cut or missing. newest is the newest format that the program
// reads; a backup with a newer one is an error. progress is called as the check proceeds, unless
// it is nil.
func Check(ctx context.Context, dir string, newest int, progress func(Progress)) (Manifest, error) {
	text, err := readRequired(dir, manifestName)
	if err != nil {
		return Manifest{}, err
	}
	sums, err := readRequired(dir, sumsName)
	if err != nil {
		return Manifest{}, err
	}
	if !strings.HasSuffix(string(sums), fmt.Sprintf("%s  %s\n", sumOf(text), manifestName)) {
		return Manifest{}, fmt.Errorf(
			"%w: %s and %s do not match, one of them was changed", ErrDamaged, manifestName,
			sumsName,
		)
	}
	m, err := parseManifest(text, newest)
	if err != nil {
		return m, err
	}
	if m.sums(sumOf(text)) != string(sums) {
		return m, fmt.Errorf("%w: %s was changed", ErrDamaged, sumsName)
	}
	meter := newMeter(progress, m.Bytes())
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
			damage = append(damage, fmt.Errorf("%s has %d bytes, want %d", f.Name, bytes, f.Bytes))
		case sum != f.SHA256:
			damage = append(
				damage,
				fmt.Errorf("%s was changed: its SHA-256 is %s, want %s", f.Name, sum, f.SHA256),
			)
		}
	}
	if len(damage) > 0 {
		return m, fmt.Errorf("%w: %w", ErrDamaged, errors.Join(damage...))
	}
	meter.finish()
	return m, nil
}

// readRequired reads a file that every finished backup has. Without it the error is ErrUnfinished.
func readRequired(dir, name string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	why := "the folder has no backup"
	if _, err := os.Stat(filepath.Join(dir, unfinishedName)); err == nil {
		why = "the backup is being written or was interrupted"
	}
	return nil, fmt.Errorf("%w in %s: %s is missing; %s", ErrUnfinished, dir, name, why)
}
