# Homebrew: the environment is made by uv, as the program's packages are wheels with hashes of their own.
class AgentTui < Formula
  desc "Terminal coding agent whose context never runs out and never forgets"
  homepage "https://github.com/agent-tui/agent-tui"
  url "https://github.com/agent-tui/agent-tui/archive/refs/tags/v0.1.0.tar.gz"
  # sha256 of that file: `brew fetch --formula docs/packaging/agent-tui.rb` prints it
  license "MIT"

  depends_on "uv" => :build
  depends_on "python@3.13"
  depends_on "ripgrep"

  def install
    python = Formula["python@3.13"].opt_bin/"python3.13"
    system "uv", "venv", "--python", python, libexec
    system "uv", "pip", "install", "--python", libexec/"bin/python", "."
    bin.install_symlink libexec/"bin/agent-tui"
    man1.install "docs/packaging/agent-tui.1"
    generate_completions_from_executable(bin/"agent-tui", "completion")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/agent-tui --version")
  end
end
