# ruff: noqa: E501 - tables of words read better in long lines
"""Words of many languages by what they mean to an attack: what lets the learned part judge wording that it never saw.

An instruction to a model is made of few meanings (drop, old, orders; give, your, secret; play, persona, without
limits) and of countless words. Each word is looked up by its stem; Han, Kana and Hangul, which have no spaces, by
substring. A word without an entry means nothing here. Deliberately no grammar: which meanings stand in which order,
and how far apart, is weighed by `learned`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

# A trailing `-` marks a stem; other words must match whole.
_LEXICON: Final[dict[str, str]] = {
    "DROP": "ignor- disregard- forget- overrid- bypass- overlook neglect- discard- abandon- skip- cancel- erase- "
    "scratch ignorier- vergiss vergess- missacht- oubli- fais faites ignore- olvid- descart- desestim- omit- "
    "dimentic- trascur- esque- desconsider- игнорир- проигнорир- забуд- отмен- отбрось- negeer- vergeet zignoruj "
    "zapomnij ignoruj تجاهل انس unut yoksay abaikan lupakan",
    "ORDERS": "instruction- instruct- prompt- rule rules direction- directive- guideline- command- polic- constraint- "
    "orders task tasks programming safeguard- guardrail- anweisung- vorgabe- regel- befehl- auftrag aufgabe- consigne- "
    "règle- regle- directive- tâche instrucci- directri- regla- indicaci- órden- tarea- istruzion- regol- direttiv- "
    "compito instruç- regra- diretri- tarefa- инструкц- правил- указани- команд- задани- instructies regels polece- "
    "zasad- التعليمات تعليمات التعليمات- الأوامر أوامر القواعد talimat- kural- instruksi perintah",
    "OLD": "previous- prior above earlier preceding foregoing original initial existing former past old before "
    "vorherig- bisherig- früher- obig- ursprünglich- alte précédent- antérieur- ancien- initial- anterior- previ- "
    "original- preceden- anteceden- iniziali предыдущ- прежн- прошл- ранее выше السابقة سابقة önceki sebelumnya",
    "ALL": "all everything anything every any whatever alle alles tout toute toutes tous todo todos todas toda tutte "
    "tutto tudo все всё всех جميع كل",
    "MODEL": "ai assistant- llm llms chatbot- gpt chatgpt claude gemini copilot bot bots agent agents llama bard "
    "sprachmodell- ki assistenten modèle modelo modello ia asistente assistente ассистент- ии модел- нейросет- المساعد "
    "مساعد نموذج asisten",
    "USER": "user user's users reader human humans customer- client- benutzer- nutzer- leser utilisateur- usuario- "
    "utente utenti usuário- пользовател- المستخدم kullanıcı pengguna",
    "YOU": "you u thou du dich dir sie ihnen tu te toi vous tú ti usted você voce ты тебя тебе вы вам вас أنت",
    "YOUR": "your yours yourself dein- ihr- ton ta tes votre vos su sus tua tuo tue suo seu sua teu твой твои твоё твою "
    "твоя твоих ваш- свои своих",
    "ME": "me my i us mir mich ich moi je mi me yo io eu mim мне меня я мой лично لي",
    "SECRET": "password- passcode- passphrase- secret secrets key keys credential- token tokens pin confidential passwort- "
    "kennwort- geheim- zugangsdaten contraseña- contrasena- clave- secreto- senha- segredo- parola chiav- segret- пароль "
    "пароля парол- секрет- ключ- wachtwoord hasło السر سر şifre kata_sandi passe",
    "PERSONAL": "birth- birthday- birthdate address- phone balance- residence lives live salary ssn favourite favorite "
    "email e-mail age initials surname wealth- income iban account accounts geburtstag geburtsdatum adresse telefonnummer "
    "kontostand gehalt wohnt anniversaire naissance salaire solde vit nacimiento dirección saldo vive teléfono nascita "
    "indirizzo nascimento endereço рожден- адрес телефон- живёт живет баланс зарплат-",
    "GIVE": "tell give show reveal share disclose provide print output say state write display repeat list confirm recite "
    "hand spell describe enter describe sag sage gib zeig zeige nenn- verrat- schreib- antworte drucke donne dis montre "
    "révèle- écris affiche répète réponds dites indiquez dime di muestra revela- escribe comparte responde repite dimmi "
    "mostra scrivi rispondi condividi ripeti mostre diga escreva repita responda скажи покажи напиши выведи назови раскрой "
    "сообщи дай ответь повтори أخبرني اكتب اعرض أظهر söyle yaz tunjukkan katakan",
    "SEND": "send- forward- upload- post posts transmit exfiltrat- export transfer wire leak email mail sende schick- leite "
    "überweis- envoie- envoyez transfère- envía envia- reenvía transfiere manda invia inoltra trasferisci envie transfira "
    "encaminhe отправь отправ- перешли переведи пришли أرسل gönder kirim",
    "ENCODE": "leetspeak leet base64 rot13 poem haiku acronym acrostic backwards reverse reversed morse letter letters "
    "spelled spelling translate translat- hex hexadecimal binary rhyme rhyming riddle cipher encode- decode- song limerick "
    "pig latin pinyin emoji emojis digit digits encrypt- decrypt- json übersetz- gedicht traduis traduce poème poema",
    "PLAY": "pretend- act acting acts roleplay- play playing simulat- imagin- suppos- hypothetic- assum- scenario- character- "
    "persona fiction- world universe dystopi- story game film movie parallel virtual reality narrator stelle stell "
    "vorstell- spiele imagine- suppos- imagina- finge fingi finja immagina представ- притвор- вообраз- تخيل",
    "NOW": "now instead henceforth immediately first onwards actually rather jetzt stattdessen sofort zuerst maintenant "
    "désormais d'abord plutôt ahora primero invece ora subito agora теперь сейчас сначала вместо الآن",
    "FREE": "unfiltered uncensored unrestricted restriction- limit limits limitation- ethic- unethical moral- amoral immoral "
    "illegal filter filters censor- refus- disclaimer- apolog- unhinged jailbreak- boundar- forbidden prohibited harmful "
    "inappropriate offensive freed bound evil toxic einschränkung- grenzen moralisch- límites sin_reglas ограничен- цензур- "
    "limiti limites swear- curses curse profan- openai",
    "NO": "not never don't dont without no nothing none cannot can't won't nor nicht nie kein- ohne ne pas jamais sans nunca "
    "sin non senza mai não nao sem не никогда без لا بدون",
    "AUTHORITY": "developer- admin- administrator- creator owner boss president manager ceo police supervisor god engineer "
    "programmer root sudo authorised authorized authoris- authoriz- employee officer government entwickler chef "
    "développeur desarrollador sviluppatore desenvolvedor разработчик администратор",
    "MODE": "mode override debug maintenance diagnostic- test check verification protocol reset system systems modus mode_ "
    "sistema système режим система",
    "TOOL": "tool tools function functions call calls execute run invoke delete delet- api download lösche führe supprime "
    "borra elimina cancella apague удали выполни вызови",
    "ANSWER": "answer- response- respond- reply replies summary summar- conclusion result- conclude antwort- réponse- "
    "respuesta- risposta resposta- ответ- الإجابة",
    "DOCUMENT": "document- page webpage website resume résumé table text article content contents file files data review- "
    "function code email context dokument- seite tabelle texte tableau página tabla pagina tabella документ- страниц- "
    "таблиц-",
    "MUST": "must should need have shall required require- necessary obliged ought musst müssen sollst dois devez debes debe "
    "tienes devi deve deves должен должна нужно обязан يجب",
    "PLEASE": "please kindly bitte veuillez plaît favor prego пожалуйста",
    "MONEY": "pay donate tip dollars euros money reward bribe charity",
    "ASIDE": "anyway reminds way speaking oh besides meanwhile übrigens d'ailleurs apropos parlando кстати",
    "CLAIM": "compromised hacked best winner perfect stars positive excellent approve accept recommend recommend- praise "
    "promote admit- love visit click link",
    "TRUST": "trust friend friends colleague common practice safer safety honest everyone yesterday told promised agreed "
    "testing research study studies survey exercise purpose",
}  # fmt: skip

_WIDE: Final[dict[str, str]] = {
    "DROP": "忽略 无视 忘记 忘掉 忽視 無視 不理 不要理会 忘れ 従わ 무시 잊어 따르지",
    "ORDERS": "指令 指示 规则 規則 提示 命令 要求 设定 ルール プロンプト 設定 지시 명령 지침 규칙 任务 タスク",
    "OLD": "之前 以上 先前 原来 以前 上記 これまで 前の 이전 위의 기존",
    "ALL": "所有 全部 一切 すべて 全て 모든 모두",
    "MODEL": "人工智能 助手 模型 机器人 アシスタント 人工知能 モデル 어시스턴트 인공지능 모델",
    "USER": "用户 用戶 使用者 ユーザー 利用者 사용자",
    "YOU": "你 您 あなた 君 당신 너는 너의",
    "ME": "我 私に 나에게 저에게",
    "SECRET": "密码 密碼 密钥 口令 机密 秘密 パスワード 暗証 鍵 비밀번호 암호 비밀 열쇠",
    "PERSONAL": "生日 住址 地址 电话 余额 出生 誕生日 住所 電話 口座 残高 생일 주소 전화 잔액",
    "GIVE": "告诉 输出 显示 给我 说出 回答 写出 打印 透露 公开 教え 出力 表示 答え 言っ 書い 述べ 見せ 알려 출력 말해 보여 써",
    "SEND": "发送 发给 转发 发到 上传 转账 送信 送って 転送 送り 보내 전송 전달",
    "PLAY": "假装 扮演 想象 假设 世界 角色 ふり 演じ 想像 仮定 キャラ 척해 연기 상상 역할",
    "NOW": "现在 从现在 首先 立即 马上 而是 今から まず すぐ 代わりに 지금부터 먼저 즉시 대신",
    "FREE": "限制 审查 道德 拒绝 制限 検閲 倫理 拒否 제한 검열 윤리 거부",
    "NO": "不要 不得 没有 别 ないで しない なし 하지 없는",
    "MODE": "模式 系统 モード システム 모드 시스템",
    "MUST": "必须 应该 需要 なければ べき 必要 해야",
    "TOOL": "删除 调用 执行 运行 工具 削除 実行 呼び出 삭제 실행 호출",
    "ANSWER": "回复 答案 总结 返答 回答 要約 답변 요약",
    "DOCUMENT": "文档 网页 表格 简历 文件 文書 ページ 表 履歴書 문서 페이지",
    "PLEASE": "请 ください 주세요 주십시오 십시오",
}  # fmt: skip

_WHOLE: Final[dict[str, str]] = {}
_STEMS: Final[dict[str, str]] = {}
for _name, _words in _LEXICON.items():
    for _word in _words.split():
        (_STEMS if _word.endswith("-") else _WHOLE).setdefault(_word.removesuffix("-"), _name)
_LENGTHS: Final = tuple(sorted({len(stem) for stem in _STEMS}, reverse=True))
_WIDE_WORDS: Final = {word: name for name, words in _WIDE.items() for word in words.split()}
_WIDE_PATTERN: Final = re.compile("|".join(sorted(map(re.escape, _WIDE_WORDS), key=lambda word: (-len(word), word))))
_MOST_REMEMBERED: Final = 50_000
_remembered: dict[str, str | None] = {}


def concept(word: str) -> str | None:
    """What a lower-case word means to an attack, if anything."""
    if word in _remembered:
        return _remembered[word]
    found = _WHOLE.get(word) or next((_STEMS[word[:n]] for n in _LENGTHS if word[:n] in _STEMS), None)
    if len(_remembered) < _MOST_REMEMBERED:  # bounded: the words come from strangers
        _remembered[word] = found
    return found


def concepts(words: Iterable[str], sentence: str) -> list[str]:
    """The meanings of a sentence in order. `words` are those with spaces between them."""
    found = [name for name in map(concept, words) if name is not None]
    if not sentence.isascii():
        found += [_WIDE_WORDS[match[0]] for match in _WIDE_PATTERN.finditer(sentence)]
    return found
