package broker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/minio/highwayhash"
	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sys/unix"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/disk"
)

// Files of nats-server 2.15 with the configuration of a stream (in streams/<stream>/) and of a
// consumer (in streams/<stream>/obs/<consumer>/).
const (
	metaFile       = "meta.inf"
	metaSumFile    = "meta.sum"
	metaKeyFile    = "meta.key"
	consumerFolder = "obs"
	messageFolder  = "msgs"
	// unreadableSuffix is appended to the name of a metaFile that cannot be read, so that the
	// server writes a new one.
	unreadableSuffix = ".unreadable"
)

// StreamFolder is the folder of a stream in a broker's store.
type StreamFolder struct {
	Account string
	Stream  string
	path    string
}

// Hub returns the hub whose log is in the folder, and whether the folder is one of a hub log.
func (f StreamFolder) Hub() (domain.HubID, bool) {
	id, ok := strings.CutPrefix(f.Stream, streams.HubStream(""))
	return domain.HubID(id), ok
}

// holdsMessages reports whether the folder has a message block with content.
func (f StreamFolder) holdsMessages() (bool, error) {
	size, err := blocks(filepath.Join(f.path, messageFolder))
	return size > 0, err
}

// streamFolders returns the folders of all streams in a store.
func streamFolders(store string) ([]StreamFolder, error) {
	dirs, err := filepath.Glob(filepath.Join(store, "jetstream", "*", "streams", "*"))
	if err != nil {
		return nil, err
	}
	folders := make([]StreamFolder, 0, len(dirs))
	for _, dir := range dirs {
		f := StreamFolder{
			Account: filepath.Base(filepath.Dir(filepath.Dir(dir))),
			Stream:  filepath.Base(dir),
			path:    dir,
		}
		if !strings.HasPrefix(f.Stream, ".") { // being deleted: the server removes the rest of it
			folders = append(folders, f)
		}
	}
	return folders, nil
}

// allFolders returns the folders of all streams in a data directory.
func allFolders(dataDir string) ([]StreamFolder, error) {
	var all []StreamFolder
	for _, store := range stores(dataDir) {
		some, err := streamFolders(store)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// Repair repairs the store of a stopped server after a crash. The server writes meta.inf and
// meta.sum one after the other, each atomically. If it crashes in between, the sum does not match,
// and the server skips the stream or consumer with all its messages at every later start, even if
// the stream is created again. Repair writes the matching sum.
//
// A meta.inf that is not the configuration of its stream, such as an empty one after a power cut
// with a SyncInterval, is renamed. The server recovers the stream's messages once the stream is
// created again.
//
// Messages that are damaged on the disk become holes of their streams: see repairBlocks.
//
// Files of hubs' streams that cannot be read or repaired are logged, and Repair continues with the
// other streams, as the server does: these streams are written again from the journal. For a stream
// of the account CLOUD such files are an error, ErrUnusable. A full disk is returned as an error,
// since a later attempt may succeed.
func Repair(store string, logger *slog.Logger) error {
	folders, err := streamFolders(store)
	if err != nil {
		return err
	}
	for _, f := range folders {
		logger := logger.With("account", f.Account, "stream", f.Stream)
		if f.Account == string(streams.AccountCloud) {
			if err := repairCloud(store, f, logger); err != nil {
				return fmt.Errorf("repair stream %s of account %s: %w", f.Stream, f.Account, err)
			}
		} else if err := repairMeta(f.path, f.Stream, f.Stream, logger); diskFull(err) {
			return fmt.Errorf("repair stream %s of account %s: %w", f.Stream, f.Account, err)
		} else if err != nil {
			logger.Error("stream not checked or not repaired; the server may skip it", "error", err)
		}
		consumers, err := os.ReadDir(filepath.Join(f.path, consumerFolder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			logger.Error(
				"consumers of a stream not checked; the server may skip them", "error", err,
			)
		}
		for _, consumer := range consumers {
			name := consumer.Name()
			err := repairMeta(
				filepath.Join(f.path, consumerFolder, name), name, f.Stream+"/"+name,
				logger.With("consumer", name),
			)
			if diskFull(err) {
				return fmt.Errorf(
					"repair consumer %s of stream %s of account %s: %w", name, f.Stream, f.Account,
					err,
				)
			} else if err != nil {
				logger.Error(
					"consumer not checked or not repaired; the server may skip it",
					"consumer", name, "error", err,
				)
			}
		}
	}
	return nil
}

// ErrUnusable means that files of a stream of the account CLOUD cannot be read or written. The
// server would take the stream for a new one, and remove its messages, which nothing else has.
var ErrUnusable = errors.New(
	"files cannot be read or written, and a start would lose what they have: give them to the user " +
		"of the service, or replace a broken disk by a copy of it",
)

// repairCloud repairs a stream of the account CLOUD. It returns an ErrUnusable if it cannot, except
// on a full disk.
func repairCloud(store string, f StreamFolder, logger *slog.Logger) error {
	err := filepath.WalkDir(f.path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := unix.Access(path, unix.R_OK|unix.W_OK); err != nil {
			return &fs.PathError{Op: "access", Path: path, Err: err}
		}
		return nil
	})
	if err == nil {
		err = repairMeta(f.path, f.Stream, f.Stream, logger)
	}
	if err == nil {
		err = repairBlocks(store, f, logger)
	}
	if err == nil || diskFull(err) {
		return err
	}
	return fmt.Errorf("%w (%w)", ErrUnusable, err)
}

// diskFull reports whether err means a full disk or an exceeded quota.
func diskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// repairMeta makes meta.sum in dir match meta.inf. name is the name of the stream or consumer, and
// sumKey the key of its sum.
func repairMeta(dir, name, sumKey string, logger *slog.Logger) error {
	state, want, err := readMeta(dir, name, sumKey)
	if err != nil {
		return err
	}
	switch state {
	case metaUnreadable:
		aside := filepath.Join(dir, metaFile+unreadableSuffix)
		logger.Error("stream configuration unreadable, set aside", "file", aside)
		if err := os.Rename(filepath.Join(dir, metaFile), aside); err != nil {
			return err
		}
		return disk.Sync(dir)
	case metaWrongSum:
		sum := filepath.Join(dir, metaSumFile)
		if info, err := os.Lstat(sum); err == nil && !info.Mode().IsRegular() {
			logger.Error("stream checksum is not a file, set aside", "file", sum+unreadableSuffix)
			if err := os.Rename(sum, sum+unreadableSuffix); err != nil {
				return err
			}
		}
		if err := disk.Write(sum, []byte(want), 0o600); err != nil {
			return err
		}
		logger.Warn("stream checksum was missing or wrong, repaired")
		return nil
	}
	return nil
}

// metaState is the state of a meta.inf and its meta.sum.
type metaState int

const (
	metaGood metaState = iota
	metaMissing
	metaUnreadable
	metaWrongSum
)

// readMeta compares a meta.inf with its sum. It returns the sum that meta.inf should have.
func readMeta(dir, name, sumKey string) (state metaState, want string, err error) {
	meta, err := os.ReadFile(filepath.Join(dir, metaFile))
	if errors.Is(err, fs.ErrNotExist) {
		return metaMissing, "", nil
	}
	if err != nil {
		return 0, "", err
	}
	if _, err := os.Stat(filepath.Join(dir, metaKeyFile)); err == nil {
		return metaGood, "", nil // encrypted, so not written by this service
	}
	var config struct {
		Name string `json:"name"`
		// ConsumerName is the name of a consumer without a configured name.
		ConsumerName string `json:"Name"`
	}
	if json.Unmarshal(meta, &config) != nil || config.Name != name && config.ConsumerName != name {
		return metaUnreadable, "", nil
	}
	if want, err = metaSum(meta, sumKey); err != nil {
		return 0, "", err
	}
	// A sum that cannot be read is replaced, whatever the reason.
	if got, err := os.ReadFile(filepath.Join(dir, metaSumFile)); err != nil || string(got) != want {
		return metaWrongSum, want, nil
	}
	return metaGood, want, nil
}

// metaSum returns the server's sum of a meta.inf: HighwayHash-64 with the SHA-256 of sumKey as key.
func metaSum(meta []byte, sumKey string) (string, error) {
	key := sha256.Sum256([]byte(sumKey))
	hash, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		return "", err
	}
	hash.Write(meta) // never fails
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// notRecovered returns the folders with messages of streams that the running server has not
// recovered.
func notRecovered(store string, s *server.Server) ([]StreamFolder, error) {
	folders, err := streamFolders(store)
	if err != nil {
		return nil, err
	}
	info, err := s.Jsz(nil)
	if err != nil {
		return nil, fmt.Errorf("list the streams: %w", err)
	}
	if info.Streams >= len(folders) {
		return nil, nil
	}
	// Without Limit the server returns only some accounts.
	if info, err = s.Jsz(&server.JSzOptions{
		Accounts: true, Streams: true, Limit: streams.MaxShards + 3,
	}); err != nil {
		return nil, fmt.Errorf("list the streams: %w", err)
	}
	recovered := map[StreamFolder]bool{}
	for _, account := range info.AccountDetails {
		for _, stream := range account.Streams {
			recovered[StreamFolder{Account: account.Name, Stream: stream.Name}] = true
		}
	}
	return withMessages(folders, func(f StreamFolder) (bool, error) {
		return !recovered[StreamFolder{Account: f.Account, Stream: f.Stream}], nil
	})
}

// Damaged returns the stream folders in the data directory of a stopped broker that have messages
// and an unreadable configuration. Their messages are recovered only if the stream is created
// again. A wrong or missing checksum does not count, since Start repairs it. Damaged changes
// nothing.
func Damaged(dataDir string) ([]StreamFolder, error) {
	folders, err := allFolders(dataDir)
	if err != nil {
		return nil, err
	}
	return withMessages(folders, func(f StreamFolder) (bool, error) {
		state, _, err := readMeta(f.path, f.Stream, f.Stream)
		return err != nil || state == metaMissing || state == metaUnreadable, nil
	})
}

// withMessages returns the folders for which lost returns true and that have messages or cannot be
// read.
func withMessages(
	folders []StreamFolder, lost func(StreamFolder) (bool, error),
) (found []StreamFolder, err error) {
	for _, f := range folders {
		is, err := lost(f)
		if err != nil {
			return nil, err
		}
		if is {
			holds, err := f.holdsMessages()
			is = holds || err != nil
		}
		if is {
			found = append(found, f)
		}
	}
	return found, nil
}
