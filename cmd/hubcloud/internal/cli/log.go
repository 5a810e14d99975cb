package cli

import (
	"log/slog"
)

// logFlags configure the log of the service.
type logFlags struct {
	LogLevel  string `help:"Lowest level to log: debug, info, warn, error." default:"${loglevel}" enum:"debug,info,warn,error" group:"Log"`
	LogFormat string `help:"Format of the log: text or json." default:"text" enum:"text,json" group:"Log"`
}

// logger returns a logger that writes to the error stream.
func (f logFlags) logger(out Output) *slog.Logger {
	level := levelOf(f.LogLevel)
	if f.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(out.Err, &slog.HandlerOptions{Level: level}))
	}
	return textLogger(out, level)
}

// textLogger returns a logger that writes lines of text to the error stream.
func textLogger(out Output, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(out.Err, &slog.HandlerOptions{Level: level}))
}

// levelOf returns the level of a --log-level. The flag parser has checked the name; levelOf returns
// slog.LevelInfo for a name that it does not know.
func levelOf(name string) slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(name)); err != nil {
		return slog.LevelInfo
	}
	return level
}
