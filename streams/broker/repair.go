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

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/durablefile"
)

// The files in which nats-server 2.15 keeps the configuration of a stream (streams/<stream>/) and
// of a consumer (streams/<stream>/obs/<consumer>/).
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

// holdsMessages reports whether the folder has any message blocks with content.
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

// Repair mends, in the store of a server that does not run, what a crash leaves between two writes
// of nats-server. The server writes meta.inf and meta.sum one after the other; each is replaced
// atomically. A stream or consumer whose sum is missing or belongs to a former meta.inf is skipped
// when the server starts, with its messages, and stays skipped: meta.inf is not written again when
// the stream is made again. So Repair writes the sum that belongs to meta.inf.
//
// A meta.inf that is not the configuration of its stream, such as an empty one after a power cut
// with a SyncInterval, is renamed. The stream's messages are there again once the stream is
// declared again.
//
// What one stream's files cannot be read or mended for is logged, and the others go on: the server,
// too, skips that stream only. A full disk is an error: there may be room later, and then the
// streams can be mended.
func Repair(store string, logger *slog.Logger) error {
	folders, err := streamFolders(store)
	if err != nil {
		return err
	}
	for _, f := range folders {
		logger := logger.With("account", f.Account, "stream", f.Stream)
		if err := repairMeta(f.path, f.Stream, f.Stream, logger); noRoom(err) {
			return fmt.Errorf("repair stream %s of account %s: %w", f.Stream, f.Account, err)
		} else if err != nil {
			logger.Error("stream not looked at or not repaired; the server may skip it", "error", err)
		}
		consumers, err := os.ReadDir(filepath.Join(f.path, consumerFolder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			logger.Error(
				"consumers of a stream not looked at; the server may skip them", "error", err,
			)
		}
		for _, consumer := range consumers {
			name := consumer.Name()
			err := repairMeta(
				filepath.Join(f.path, consumerFolder, name), name, f.Stream+"/"+name,
				logger.With("consumer", name),
			)
			if noRoom(err) {
				return fmt.Errorf(
					"repair consumer %s of stream %s of account %s: %w", name, f.Stream, f.Account,
					err,
				)
			} else if err != nil {
				logger.Error("consumer not looked at or not repaired; the server may skip it", "consumer", name, "error", err)
			}
		}
	}
	return nil
}

// noRoom reports whether a write has failed on a full disk, or on a quota.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// repairMeta makes meta.inf and meta.sum in dir agree. name is what meta.inf configures, sumKey
// what its sum is keyed with.
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
		return durablefile.Sync(dir)
	case metaWrongSum:
		sum := filepath.Join(dir, metaSumFile)
		if info, err := os.Lstat(sum); err == nil && !info.Mode().IsRegular() {
			logger.Error("stream checksum is no file, set aside", "file", sum+unreadableSuffix)
			if err := os.Rename(sum, sum+unreadableSuffix); err != nil {
				return err
			}
		}
		if err := durablefile.Write(sum, []byte(want), 0o600); err != nil {
			return err
		}
		logger.Warn("stream checksum was missing or wrong, repaired")
		return nil
	}
	return nil
}

// metaState is what is found of a meta.inf and its meta.sum.
type metaState int

const (
	metaGood metaState = iota
	metaMissing
	metaUnreadable
	metaWrongSum
)

// readMeta compares a meta.inf with its sum, and returns the sum that it should have.
func readMeta(dir, name, sumKey string) (state metaState, want string, err error) {
	meta, err := os.ReadFile(filepath.Join(dir, metaFile))
	if errors.Is(err, fs.ErrNotExist) {
		return metaMissing, "", nil
	}
	if err != nil {
		return 0, "", err
	}
	if _, err := os.Stat(filepath.Join(dir, metaKeyFile)); err == nil {
		return metaGood, "", nil // encrypted, by a server that is not configured here
	}
	var config struct {
		Name string `json:"name"`
		// ConsumerName is in meta.inf of a consumer that has no name in its configuration.
		ConsumerName string `json:"Name"`
	}
	if json.Unmarshal(meta, &config) != nil || config.Name != name && config.ConsumerName != name {
		return metaUnreadable, "", nil
	}
	if want, err = metaSum(meta, sumKey); err != nil {
		return 0, "", err
	}
	// A sum that cannot be read is written anew, whatever the reason.
	if got, err := os.ReadFile(filepath.Join(dir, metaSumFile)); err != nil || string(got) != want {
		return metaWrongSum, want, nil
	}
	return metaGood, want, nil
}

// metaSum is the server's sum of a meta.inf: HighwayHash-64, keyed with SHA-256 of the name.
func metaSum(meta []byte, sumKey string) (string, error) {
	key := sha256.Sum256([]byte(sumKey))
	hash, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		return "", err
	}
	hash.Write(meta) // never fails
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// notRecovered returns the folders that hold messages of a stream that the running server does not
// have.
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
	// Without a limit the server returns only some accounts.
	if info, err = s.Jsz(&server.JSzOptions{
		Accounts: true, Streams: true, Limit: streams.MaxShards + 3,
	}); err != nil {
		return nil, fmt.Errorf("list the streams: %w", err)
	}
	there := map[StreamFolder]bool{}
	for _, account := range info.AccountDetails {
		for _, stream := range account.Streams {
			there[StreamFolder{Account: account.Name, Stream: stream.Name}] = true
		}
	}
	return withMessages(folders, func(f StreamFolder) (bool, error) {
		return !there[StreamFolder{Account: f.Account, Stream: f.Stream}], nil
	})
}

// Folders returns the folders that hold messages in a data directory, whether or not the broker
// runs.
func Folders(dataDir string) ([]StreamFolder, error) {
	folders, err := streamFolders(filepath.Join(dataDir, storeFolder))
	if err != nil {
		return nil, err
	}
	return withMessages(folders, func(StreamFolder) (bool, error) { return true, nil })
}

// Damaged looks through the data directory of a broker that does not run. It returns the folders
// that hold messages of streams whose configuration cannot be read: they are there again only when
// their stream is declared again. A wrong or missing checksum is no damage; Start repairs it.
// Damaged changes nothing.
func Damaged(dataDir string) ([]StreamFolder, error) {
	folders, err := streamFolders(filepath.Join(dataDir, storeFolder))
	if err != nil {
		return nil, err
	}
	return withMessages(folders, func(f StreamFolder) (bool, error) {
		state, _, err := readMeta(f.path, f.Stream, f.Stream)
		return err != nil || state == metaMissing || state == metaUnreadable, nil
	})
}

// withMessages returns the folders that are lost and hold messages, or may hold them.
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
