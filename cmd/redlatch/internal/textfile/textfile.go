// Package textfile writes and reads files of metrics in the text format of
// Prometheus, as the textfile collector of node_exporter picks them up.
package textfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Series is a metric with its labels, given as pairs of a name and a value, in
// the form in which a file has it. It is also its key: equal series have equal
// texts.
func Series(metric string, labels ...string) string {
	var b strings.Builder
	b.WriteString(metric)
	for i := 0; i+1 < len(labels); i += 2 {
		b.WriteByte("{,"[min(i, 1)])
		fmt.Fprintf(&b, `%s="%s"`, labels[i], escaped.Replace(strings.ToValidUTF8(labels[i+1], "\uFFFD")))
	}
	if len(labels) > 1 {
		b.WriteByte('}')
	}
	return b.String()
}

// escaped is how the format writes the value of a label.
var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// Gauge is what comes before the series of a metric.
func Gauge(metric, help string) string {
	return fmt.Sprintf("# HELP %s %s\n# TYPE %s gauge\n", metric, help, metric)
}

// maxSize limits what is read: a larger file is not one of ours.
const maxSize = 1 << 26

// ErrForeign is the error of a file that something else wrote.
var ErrForeign = errors.New("it is not a file of metrics that redlatch wrote")

// Read returns the value of each series in a file, by its text. A file that
// does not exist, or is empty, has none. A file whose first metric does not have
// the prefix is an ErrForeign.
func Read(path, prefix string) (map[string]string, error) {
	values := map[string]string{}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return values, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxSize:
		return nil, ErrForeign // do not open it: a pipe would block
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(text) > 0 && !strings.HasPrefix(string(text), "# HELP "+prefix) {
		return nil, ErrForeign
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if at := strings.LastIndexByte(line, ' '); at > 0 && !strings.HasPrefix(line, "#") {
			values[line[:at]] = line[at+1:]
		}
	}
	return values, nil
}

// Write replaces a file. Everybody may read it: the collector is another user.
func Write(path, text string) error { return Replace(path, 0o644, strings.NewReader(text)) }

// Replace replaces a file, so that a reader finds the former content or the new
// one, also after a loss of power, and also if it is a program that runs. Errors
// do not name the temporary file.
func Replace(path string, mode fs.FileMode, content io.Reader) error {
	// Hidden, and without the ending that the collector looks for.
	temp, err := os.CreateTemp(filepath.Dir(path), ".redlatch-*")
	if err != nil {
		return plain(err)
	}
	_, err = io.Copy(temp, content)
	if err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		os.Remove(temp.Name())
	}
	return plain(err)
}

// plain is an error without the file that it names.
func plain(err error) error {
	var path *os.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
